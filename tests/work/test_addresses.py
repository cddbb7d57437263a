import pytest

from work.addresses import is_public


@pytest.mark.parametrize(
    "address",
    [
        *("127.0.0.1", "10.0.0.1", "169.254.169.254", "100.64.0.1", "192.0.0.8", "192.0.0.192"),
        *("::1", "fe80::1", "fd00::1", "::ffff:10.0.0.1", "64:ff9b::a00:1", "64:ff9b:1::1"),
        *("3fff::1", "2002:a00:1::", "224.0.0.1", "ff02::1"),
        *("fec0::1", "5f00::1", "::ffff:0:127.0.0.1", "192.88.99.1", "168.63.129.16"),
    ],
)
def test_what_is_not_one_host_on_the_internet(address):
    assert not is_public(address)


@pytest.mark.parametrize("address", ["8.8.8.8", "192.0.1.1", "2606:4700::1111", "::ffff:8.8.8.8"])
def test_what_is(address):
    assert is_public(address)
