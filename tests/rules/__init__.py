"""Tests of the rule language; `strategies` serves the tests of other packages as well."""
