/* Behind each expansion of decomps.def: its columns mean something else in the next one. */
#undef DECOMP
#undef DECOMP_WIDE
#undef DECOMP_FN
#undef DECOMP_MANY
#undef DECOMP_BODY
#undef COMPOSITE
#undef COMPOSITE_WIDE
#undef COMPOSITE_FN
#undef COMPOSITE_MANY
#undef COMPOSITE_BODY
#undef KEPT
