// Connections before their first request.
extension CounterFamily {
    static let arrivals = [
        CounterFamily(
            "pinfold_proxy_headers", "PROXY headers that were read, by version.",
            [
                Series("version=\"1\"", .proxyHeadersV1),
                Series("version=\"2\"", .proxyHeadersV2),
            ]),
        CounterFamily(
            "pinfold_upstream_proxy_headers",
            "PROXY headers with which connections to servers began, by whose address they had.",
            [
                Series("of=\"client\"", .upstreamProxyHeadersClients),
                Series("of=\"none\"", .upstreamProxyHeadersOwn),
            ]),
        CounterFamily(
            "pinfold_proxy_headers_refused",
            "Connections that were closed for want of a valid PROXY header, by cause.",
            [
                Series("cause=\"sender\"", .proxyHeadersSenderRefused),
                Series("cause=\"missing\"", .proxyHeadersMissing),
                Series("cause=\"malformed\"", .proxyHeadersMalformed),
                Series("cause=\"checksum\"", .proxyHeadersChecksumWrong),
                Series("cause=\"address\"", .proxyHeadersAddressImpossible),
                Series("cause=\"timeout\"", .proxyHeadersTimeout),
                Series("cause=\"closed\"", .proxyHeadersClosed),
            ]),
        CounterFamily(
            "pinfold_socks_refused",
            "Clients of SOCKS that were refused before there was a request, by cause.",
            [
                Series("cause=\"version\"", .socksVersionRefused),
                Series("cause=\"method\"", .socksMethodRefused),
                Series("cause=\"malformed\"", .socksMalformed),
                Series("cause=\"command\"", .socksCommandRefused),
                Series("cause=\"address_type\"", .socksAddressTypeRefused),
                Series("cause=\"timeout\"", .socksTimeout),
            ]),
        CounterFamily(
            "pinfold_transparent_connections",
            "Connections at transparent listeners, by what the client speaks.",
            [
                Series("protocol=\"http\"", .transparentHTTP),
                Series("protocol=\"tls\"", .transparentTLS),
                Series("protocol=\"other\"", .transparentOther),
                Series("protocol=\"server_first\"", .transparentServerFirst),
            ]),
        CounterFamily(
            "pinfold_transparent_refused",
            "Connections at transparent listeners that were closed before a request, by cause.",
            [
                Series("cause=\"unknown\"", .transparentDestinationUnknown),
                Series("cause=\"direct\"", .transparentDirect),
                Series("cause=\"own_connection\"", .transparentOwnConnection),
                Series("cause=\"malformed\"", .transparentMalformed),
                Series("cause=\"silent\"", .transparentSilent),
                Series("cause=\"timeout\"", .transparentTimeout),
            ]),
        CounterFamily(
            "pinfold_transparent_foreign_addresses",
            "Hosts named on a connection to an address that is none of theirs.",
            [Series("", .transparentAddressesForeign)]),
    ]
}
