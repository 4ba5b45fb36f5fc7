import HTTPCore

/// An authority and the certificate of a server that it has issued, both valid until 2126. The
/// authority's key was not kept: what it has signed is among the seeds, and there is nothing else.
enum SampleAuthority {
    /// When everything is judged: the beginning of 2027, in seconds since 1970.
    static let time: Int64 = 1_798_761_600

    /// The authority's own certificate, in DER.
    static let certificate = decoded(
        """
        MIIBajCCARCgAwIBAgIUDrVR+SFFGNjadhZwcBs15o5ATNMwCgYIKoZIzj0EAwIwEjEQMA4GA1UEAwwHRnV6
        eiBDQTAgFw0yNjExMjYyMTQwMjVaGA8yMTI2MTEwMjIxNDAyNVowEjEQMA4GA1UEAwwHRnV6eiBDQTBZMBMG
        ByqGSM49AgEGCCqGSM49AwEHA0IABDLK6mdw354k6aACsdyuGrG7GIL2LMMYlP1Zz7J3xbQJmYsIad+6po1x
        cmWevYLTcYJoSBGmkJPxpkBrJfPobpijQjBAMA8GA1UdEwEB/wQFMAMBAf8wDgYDVR0PAQH/BAQDAgGGMB0G
        A1UdDgQWBBSjt0YDo8FAsbPKs3PUURejK535zTAKBggqhkjOPQQDAgNIADBFAiAkASo6WPNiaMT/3Eg4rJ+a
        mYvKNJcDGgqyo9udRmL7jQIhAM/muLXQMAfoBzK5Z3ElfD7ackb+mz6CVZAmI9xNcjxv
        """)

    /// The certificate of `a.test`, in DER.
    static let server = decoded(
        """
        MIIBnzCCAUWgAwIBAgICEAAwCgYIKoZIzj0EAwIwEjEQMA4GA1UEAwwHRnV6eiBDQTAgFw0yNjExMjYyMTQw
        MjVaGA8yMTI2MTEwMjIxNDAyNVowFDESMBAGA1UEAwwJbGVhZi50ZXN0MFkwEwYHKoZIzj0CAQYIKoZIzj0D
        AQcDQgAE+3FBFGdb4FbSHCcmp5rv94xrDPOjIIT9keXV6E5ADRdFKxoSVclzNQj5BRZN5bLksWJmxyV9ddUx
        3R2RaOaoL6OBhjCBgzARBgNVHREECjAIggZhLnRlc3QwHwYDVR0jBBgwFoAUo7dGA6PBQLGzyrNz1FEXoyud
        +c0wCQYDVR0TBAIwADAOBgNVHQ8BAf8EBAMCB4AwEwYDVR0lBAwwCgYIKwYBBQUHAwEwHQYDVR0OBBYEFFra
        FQ0fSqJIt8HlFvHgHsdpEQ4wMAoGCCqGSM49BAMCA0gAMEUCIQDvPEKglwy5MOT0W/Q0JNPej0HA5Y2yaK+p
        LLzri6p/fQIgXkZjkpHYy83NEGD9Wtdem+rO33IKRYBjQOr6Om1bRyU=
        """)

    private static func decoded(_ text: String) -> [UInt8] {
        var bytes: [UInt8] = []
        let isDecoded = Base64.decode(text.utf8, into: &bytes) { $0 == 0x0A }
        precondition(isDecoded)
        return bytes
    }
}
