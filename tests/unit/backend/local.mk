unit_tests += %D%/test_config
tests_unit_backend_test_config_LDADD = $(world)
