"""What a site is called: its own name, and what it is."""

import pytest

from dpmpc.consortium.toml import Site


@pytest.mark.parametrize(
    ("site", "called"),
    [
        (Site("charite", None, 3), "charite (owner 3)"),
        (Site("uni", 1, None), "uni (party 1)"),
        (Site("haus0", 0, 0), "haus0 (party 0 and owner 0)"),
    ],
)
def test_a_site_is_called_by_its_name_and_what_it_is(site: Site, called: str) -> None:
    assert site.called == called
