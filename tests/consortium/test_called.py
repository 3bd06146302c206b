"""What a site is called: its own name, and what it is."""

import pytest

from dpmpc.consortium.toml import SiteEntry


@pytest.mark.parametrize(
    ("site", "called"),
    [
        (SiteEntry("charite", None, 3), "charite (owner 3)"),
        (SiteEntry("uni", 1, None), "uni (party 1)"),
        (SiteEntry("haus0", 0, 0), "haus0 (party 0 and owner 0)"),
    ],
)
def test_a_site_is_called_by_its_name_and_what_it_is(site: SiteEntry, called: str) -> None:
    assert site.called == called
