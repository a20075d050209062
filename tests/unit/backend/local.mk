unit_tests += %D%/test_config
tests_unit_backend_test_config_LDADD = $(world)
unit_tests += %D%/test_program
tests_unit_backend_test_program_LDADD = $(world)
unit_tests += %D%/test_fallback
tests_unit_backend_test_fallback_LDADD = $(world)
