import PinfoldResolver

extension ResolveError {
    /// Its entry as the reason of an exchange.
    package var entry: ReasonEntry {
        switch self {
        case .nxdomain:
            Self.entry(
                "dns-nxdomain", "the host name does not exist",
                "Correct the name; the resolver in use is `resolver.servers`.")
        case .noData:
            Self.entry(
                "dns-nodata", "the host name has no address",
                "The name has neither A nor AAAA records: correct the zone or the name.")
        case .timeout:
            Self.entry(
                "dns-timeout", "no name server answered in time",
                "Check that `resolver.servers` can be reached from here.", 504, .dnsTimeout)
        case .serverFailure:
            Self.entry(
                "dns-servfail", "the name server failed to look the host name up",
                "Query the same server with `dig`: the zone is broken or its servers are down.")
        case .refused:
            Self.entry(
                "dns-refused", "the name server refused to look the host name up",
                "Use a name server that serves this machine (`resolver.servers`).")
        case .unreachable:
            Self.entry(
                "dns-unreachable", "no name server could be reached",
                "Check `resolver.servers` and the network between.")
        case .badResponse:
            Self.entry(
                "dns-bad-response", "the name server's answer is invalid",
                "Use another name server (`resolver.servers`).")
        case .badName:
            Self.entry(
                "dns-bad-name", "the host is neither an address nor a valid name",
                "Correct the URL: labels have at most 63 characters, names 253.")
        case .overloaded:
            Self.entry(
                "dns-overloaded", "too many names are waiting to be looked up",
                "The name servers are too slow for the load, or a client requests many names that "
                    + "do not resolve.",
                503, .internalError)
        case .clientLimit:
            Self.entry(
                "dns-client-limit",
                "this client has as many name lookups in progress as one client may have",
                "Find out what the client requests: many names at once, or names in a zone that "
                    + "does not answer.",
                503, .internalError)
        case .zoneLimit:
            Self.entry(
                "dns-zone-limit",
                "too many lookups of names in this zone are in progress without an answer",
                "Check the zone's name servers with `dig`: they answer slowly, or not at all.",
                503, .internalError)
        case .cancelled:
            Self.entry(
                "dns-cancelled", "the gateway is stopping",
                "Nothing: the process is about to end.", 503, .internalError)
        }
    }

    private static func entry(
        _ token: String, _ meaning: String, _ remedy: String, _ status: UInt16 = 502,
        _ errorType: ProxyErrorType = .dnsError
    ) -> ReasonEntry {
        ReasonEntry(token, .names, status, errorType, meaning, remedy: remedy)
    }
}
