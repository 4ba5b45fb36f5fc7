import HTTPCore

// The chain of gateways that a message passes (RFC 9110 §7.6.3), and loops in it.
extension Exchange {
    // MARK: The name

    /// The gateway's name in messages of this exchange; `nil` for its own.
    var pseudonym: GatewayName? {
        let policy = environment.policy
        guard policy.names != nil else { return nil }
        let configuration = policy.configuration
        guard let host = hostAskedFor else { return configuration.via }
        return configuration.name(entry: policy.entry(host: host.name, port: host.port))
    }

    /// The host that decides the entry; `nil` if it is not known.
    private var hostAskedFor: (name: String, port: UInt16)? {
        if let key = origin?.key { return (key.host, key.requestedPort) }
        switch ingress?.role {
        case .bound(let authority): return (authority.host, authority.port)
        case .reverse(let upstream): return (upstream.host, upstream.port)
        case .forward, .balanced, .admin, .proxied, .proof, .transparent, nil: break
        }
        guard request.length > 0, request.form == .authority || request.form == .absolute else {
            return nil
        }
        return (withRequestHead { $0.text(at: request.host) }.lowercasedASCII, request.port)
    }

    /// Appends the line of Via to a request.
    @inline(__always)
    func appendVia(to writer: inout HeadWriter) {
        if let name = rules?.name {
            ViaEntry(name, environment.shared.viaMark)
                .append(received: request.version, to: &writer)
        } else {
            writer.appendVia(received: request.version)
        }
    }

    /// The most bytes of that line beyond those of every request's.
    var viaBytes: Int { rules?.name == nil ? 0 : ViaEntry.maximumLineBytes }

    // MARK: Loops

    /// If this gateway occurs more often than this in Via, it is a loop, not a chain.
    private static let passesAllowed = 10

    var hasPassedTooOften: Bool { passes > Self.passesAllowed }

    /// How often this gateway has forwarded the request, according to Via. Without pseudonyms, a
    /// gateway of the same name counts too.
    @inline(__always)
    var passes: Int { request.fields.contains(.via) ? passesInVia : 0 }

    private var passesInVia: Int {
        let own = environment.policy.names.map {
            ViaPasses(names: $0, mark: environment.shared.viaMark)
        }
        return withRequestHead { bytes in
            var passes = 0
            for field in request.fields where field.id == .via {
                let value = bytes.extracting(field.value.indices)
                passes += own?.count(in: value) ?? value.occurrences(of: "pinfold")
            }
            return passes
        }
    }
}
