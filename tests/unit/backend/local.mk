unit_tests += %D%/test_config
tests_unit_backend_test_config_LDADD = $(world)
unit_tests += %D%/test_core
tests_unit_backend_test_core_LDADD = $(world)
unit_tests += %D%/test_program
tests_unit_backend_test_program_LDADD = $(world)
unit_tests += %D%/test_fallback
tests_unit_backend_test_fallback_LDADD = $(world)
unit_tests += %D%/test_service
tests_unit_backend_test_service_LDADD = $(world)
unit_tests += %D%/test_load
tests_unit_backend_test_load_LDADD = $(world)
unit_tests += %D%/test_dynamic
tests_unit_backend_test_dynamic_LDADD = $(world)
if HAVE_ONEDNN
unit_tests += %D%/test_onednn
tests_unit_backend_test_onednn_LDADD = $(world)
endif
unit_tests += %D%/test_variants
tests_unit_backend_test_variants_LDADD = $(world)
EXTRA_DIST += %D%/acting.h
