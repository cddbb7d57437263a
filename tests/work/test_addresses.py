from work.addresses import is_public


def test_what_is_one_host_on_the_internet():
    public = ["8.8.8.8", "192.0.1.1", "2606:4700::1111", "::ffff:8.8.8.8"]
    others = ["127.0.0.1", "10.0.0.1", "169.254.169.254", "100.64.0.1", "192.0.0.8", "192.0.0.192"]
    others += ["::1", "fe80::1", "fd00::1", "::ffff:10.0.0.1", "64:ff9b::a00:1", "64:ff9b:1::1"]
    others += ["3fff::1", "2002:a00:1::", "224.0.0.1", "ff02::1"]
    others += ["fec0::1", "5f00::1", "::ffff:0:127.0.0.1", "192.88.99.1", "168.63.129.16"]
    assert [address for address in (*public, *others) if is_public(address)] == public
