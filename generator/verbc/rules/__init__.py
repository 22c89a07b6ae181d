"""The rules across a spec. Reading RULES and RULES_OF_DATA is reading what has to fit together."""

from collections.abc import Callable, Iterable

from ..parse import Parsed
from ..problems import Problem, SpecError
from .built import everything_is_built
from .contents import (
    codes_can_happen,
    examples_fit,
    kinds_are_known,
    schemas_are_sound,
    schemas_stay_readable,
    types_come_to_an_end,
)
from .naming import (
    attributes_are_distinct,
    backends_have_names_of_their_own,
    classes_are_distinct,
    functions_are_distinct,
    handlers_are_modules,
    package_shadows_nothing,
    protocols_are_distinct,
    types_have_names_of_their_own,
)
from .operating import jobs_know_their_backends, operations_are_narrowed_only, operations_exist
from .parameters import (
    commands_can_say_it,
    flags_are_distinct,
    headers_are_of_parameters,
    options_have_an_effect,
    parameters_have_one_place,
    refused_parameters_are_no_parameters,
    required_parameters_exist,
    run_options_name_parameters,
    varying_parameters_are_texts,
)
from .requests import (
    members_are_distinct,
    renamings_have_an_effect,
    requests_can_say_it,
    requests_take_what_is_declared,
    services_are_addresses,
    targets_are_requests,
)
from .serving import (
    access_has_an_effect,
    idempotency_has_an_effect,
    keys_are_asked_of_a_service,
    policies_are_sound,
    revisions_are_distinct,
    rights_are_rights,
    scopes_grant_something,
    something_is_served,
)
from .upstreams import manifests_are_right, one_gateway_is_enough, tools_are_pinned, variables_are_names
from .verbs import (
    commands_are_words,
    commands_stay_outside_the_fence,
    content_comes_from_python,
    everything_is_used,
    limits_have_an_effect,
    synonyms_lead_somewhere,
    targets_fit_their_backend,
    uses_name_parts_once,
    verbs_are_whole,
    verbs_have_one_backend,
)

Rule = Callable[[Parsed], Iterable[Problem]]

RULES: tuple[Rule, ...] = (
    everything_is_built,
    backends_have_names_of_their_own,
    protocols_are_distinct,
    package_shadows_nothing,
    functions_are_distinct,
    classes_are_distinct,
    types_have_names_of_their_own,
    attributes_are_distinct,
    verbs_are_whole,
    verbs_have_one_backend,
    uses_name_parts_once,
    everything_is_used,
    jobs_know_their_backends,
    operations_exist,
    variables_are_names,
    manifests_are_right,
    one_gateway_is_enough,
    tools_are_pinned,
    targets_fit_their_backend,
    commands_are_words,
    commands_stay_outside_the_fence,
    content_comes_from_python,
    required_parameters_exist,
    refused_parameters_are_no_parameters,
    run_options_name_parameters,
    parameters_have_one_place,
    types_come_to_an_end,
    schemas_stay_readable,
    schemas_are_sound,
    kinds_are_known,
    codes_can_happen,
    synonyms_lead_somewhere,
    something_is_served,
    revisions_are_distinct,
    access_has_an_effect,
    keys_are_asked_of_a_service,
    policies_are_sound,
    services_are_addresses,
    requests_take_what_is_declared,
    idempotency_has_an_effect,
    limits_have_an_effect,
    handlers_are_modules,
)
# These look at data through schemas, so they wait until the schemas are sound.
RULES_OF_DATA: tuple[Rule, ...] = (
    varying_parameters_are_texts,
    headers_are_of_parameters,
    flags_are_distinct,
    commands_can_say_it,
    options_have_an_effect,
    operations_are_narrowed_only,
    targets_are_requests,
    requests_can_say_it,
    members_are_distinct,
    renamings_have_an_effect,
    rights_are_rights,
    scopes_grant_something,
    examples_fit,
)


def check(parsed: Parsed) -> Parsed:
    """The same spec, when nothing in it contradicts anything else.

    Raises:
        SpecError: with every problem that the rules find.
    """
    problems = [problem for rule in RULES for problem in rule(parsed)]
    if not problems:
        problems = [problem for rule in RULES_OF_DATA for problem in rule(parsed)]
    if problems:
        raise SpecError(problems)
    return parsed
