# What tests/features.def promises, each row shown by functions that bear its id, through the public headers.
feature_plugins = %D%/plugins/defines.so %D%/plugins/named_otherwise.so %D%/plugins/once.so \
	tests/vendor/composer.so tests/vendor/hello.so
check_DATA += $(feature_plugins)
CLEANFILES += $(feature_plugins)
$(feature_plugins): $(bad_headers)
EXTRA_DIST += %D%/plugins/defines.c %D%/plugins/named_otherwise.c %D%/plugins/once.c

unit_tests += %D%/test_backends %D%/test_calls %D%/test_functions %D%/test_operators %D%/test_registry %D%/test_training
unit_tests += %D%/test_backends %D%/test_calls %D%/test_functions %D%/test_operators %D%/test_registry %D%/test_trees
unit_tests += %D%/test_dynamic
unit_tests += %D%/test_custom_ops
unit_tests += %D%/test_custom_ops %D%/test_flow
script_tests += %D%/F047.sh
script_tests += %D%/F026.sh %D%/F060.sh %D%/F100.sh %D%/F110.sh
EXTRA_DIST += %D%/core.txt %D%/surveyed.txt
check_PROGRAMS += %D%/hello %D%/hello_cxx
%C%_hello_SOURCES = %D%/hello.c
%C%_hello_LDADD = libbackplane.la
%C%_hello_cxx_SOURCES = %D%/hello_cxx.cc
%C%_hello_cxx_LDADD = libbackplane.la
tests_features_test_backends_LDADD = $(world)
tests_features_test_calls_LDADD = $(world)
tests_features_test_dynamic_LDADD = $(world)
tests_features_test_functions_LDADD = $(world)
tests_features_test_operators_LDADD = $(world)
tests_features_test_registry_LDADD = $(world)
tests_features_test_training_LDADD = $(world)
tests_features_test_trees_LDADD = $(world)
tests_features_test_custom_ops_LDADD = $(world)
tests_features_test_flow_LDADD = $(world)
