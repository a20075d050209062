/* What a thread holds while it captures or compiles in a callable: tests hold it to be that thread. */
#ifndef TESTS_MODEL_CLAIM_H
#define TESTS_MODEL_CLAIM_H
#include <backplane/backplane.h>
#include <stdbool.h>

/* hold: takes g's claim, which nobody else may have; else gives it back. */
void claim_callable(bp_callable *g, bool hold);
#endif
