/// What a server presents before TLS 1.3: all that its judge needs.
package struct ServerProof: Hashable, Sendable {
    package var version: UInt16
    package var suite: UInt16
    /// DER, the server's own certificate first.
    package var chain: [[UInt8]]
    /// Its key for this handshake; nil: the certificate's own key is used (``ServerProofKind``).
    package var keyExchange: ServerKeyExchange?
    /// What the signature is made over, before the parameters.
    package var randoms: [UInt8]
    /// What the session may be resumed by; empty: by no identifier.
    package var sessionID: [UInt8]
    /// The OCSP response that it stapled, in DER (RFC 6066 §8); nil: none that can be read.
    package var staple: [UInt8]?
    /// The SCTs of Certificate Transparency, as the extension of the ServerHello has them.
    package var timestamps: [UInt8]?
}

/// A server's answer to a ClientHello, up to where it is known what the server proves: its flight
/// before TLS 1.3, or the first message of a later version, which shows nothing (RFC 5246 §7.3).
package struct ServerFlight {
    /// What the answer is.
    package enum Finding: Hashable, Sendable {
        /// The whole flight, and what is in it.
        case presented(ServerProof)
        /// The session that the client offered goes on: nothing is proved anew.
        case resumed(version: UInt16)
        /// TLS 1.3: what proves something is encrypted.
        case encrypted
        /// The server will not.
        case alert(code: UInt8)
    }

    private enum Step { case hello, certificate, keyExchange, request, done, ended }

    /// Certificates that are taken, in number.
    package static let maximumCertificates = 32

    private let hello: ClientHello
    private var stream: HandshakeStream
    private var step = Step.hello
    private var server: ServerHello?
    private var kind: ServerProofKind?
    private var chain: [[UInt8]] = []
    private var keyExchange: ServerKeyExchange?
    private var statusHasCome = false
    private var staple: [UInt8]?
    /// The ticket that a resumed session is continued by.
    package private(set) var ticket: [UInt8] = []
    /// What has come with the ServerHello of TLS 1.3, and behind it.
    private var behind: [UInt8] = []

    package init(
        answering hello: ClientHello, limits: HandshakeStream.Limits = HandshakeStream.Limits()
    ) {
        self.hello = hello
        stream = HandshakeStream(limits: limits)
    }

    /// Where the client's session may have been seen before.
    package var serverHello: ServerHello? { server }

    /// Takes the next bytes of the server; nil: more of them are needed.
    ///
    /// - Throws: what cannot be followed, or must not be.
    package mutating func take(
        _ bytes: UnsafeRawBufferPointer
    ) throws(TLSWireError) -> Finding? {
        var rest = bytes[...]
        while step != .ended, let item = try stream.next(&rest) {
            switch item {
            case .alert(false, _): continue
            case .alert(true, let code):
                step = .ended
                return .alert(code: code)
            case .changeCipherSpec: return try cipherChanges()
            case .message(let message):
                if let finding = try take(message) {
                    if finding == .encrypted { behind = Array(rest) }
                    // One that goes on in plain text has another reading than the client's.
                    if case .presented = finding, !rest.isEmpty || !stream.isBetweenMessages {
                        throw .unexpected("more than a flight")
                    }
                    return finding
                }
            }
        }
        return nil
    }

    /// How it goes on where the server asks for another ClientHello; nil: it does not.
    ///
    /// - Parameter readsEncryptedHello: whether the server may read an encrypted ClientHello.
    /// - Throws: for a request that no client would follow, and for what may not come behind it.
    package func retry(readsEncryptedHello: Bool) throws(TLSWireError) -> HelloRetry? {
        guard let server, server.asksForRetry else { return nil }
        let request = try HelloRetryRequest(server, answering: hello)
        guard stream.isBetweenMessages else {
            throw .unexpected("more than a request for another ClientHello")
        }
        var retry = HelloRetry(
            of: hello, by: request, readsEncryptedHello: readsEncryptedHello)
        let answer = try behind.withUnsafeBufferPointer { bytes throws(TLSWireError) in
            try retry.takeFromServer(UnsafeRawBufferPointer(bytes))
        }
        guard answer == nil else {
            throw .unexpected("an alert behind a request for another ClientHello")
        }
        return retry
    }

    private mutating func cipherChanges() throws(TLSWireError) -> Finding {
        guard step == .certificate, let server, isResumption(server) else {
            throw .unexpected("a change of cipher")
        }
        step = .ended
        return .resumed(version: server.version)
    }

    /// Whether the server may be taking up what the client offers: the session by its identifier,
    /// or the ticket (RFC 5246 §7.4.1.3, RFC 5077 §3.4).
    private func isResumption(_ server: ServerHello) -> Bool {
        if hello.sessionID.isEmpty { return !hello.ticket.isEmpty }
        return server.sessionID == hello.sessionID
    }

    private mutating func take(_ message: HandshakeMessage) throws(TLSWireError) -> Finding? {
        switch (message.kind, step) {
        case (.serverHello, .hello):
            let server = try ServerHello(message.body, answering: hello)
            self.server = server
            if server.version == ClientHello.Version.tls13 {
                step = .ended
                return .encrypted
            }
            guard let kind = ServerProofKind(suite: server.suite) else {
                throw .unprovable("the cipher suite")
            }
            self.kind = kind
            step = .certificate
        case (.newSessionTicket, .certificate):
            guard let server, isResumption(server), ticket.isEmpty else {
                throw .unexpected("a ticket")
            }
            ticket = try SessionTicket.read(message.body)
        case (.certificate, .certificate):
            guard ticket.isEmpty else { throw .unexpected("a certificate") }
            chain = try Self.certificates(message.body)
            step = .keyExchange
        case (.certificateStatus, .keyExchange):
            guard !statusHasCome else { throw .unexpected("a second status") }
            statusHasCome = true
            staple = try? Self.staple(message.body)
        case (.serverKeyExchange, .keyExchange):
            guard let kind, let server else { throw .unexpected("a ServerKeyExchange") }
            keyExchange = try ServerKeyExchange(message.body, kind: kind, version: server.version)
            step = .request
        case (.certificateRequest, .keyExchange) where kind == .decryption,
            (.certificateRequest, .request):
            step = .done
        case (.serverHelloDone, .keyExchange) where kind == .decryption,
            (.serverHelloDone, .request), (.serverHelloDone, .done):
            guard message.body.isEmpty else { throw .malformed("the end of the flight") }
            step = .ended
            return proof.map { .presented($0) }
        default: throw .unexpected("the order of messages")
        }
        return nil
    }

    private var proof: ServerProof? {
        guard let server else { return nil }
        return ServerProof(
            version: server.version, suite: server.suite, chain: chain, keyExchange: keyExchange,
            randoms: hello.random + server.random, sessionID: server.sessionID,
            staple: staple, timestamps: server.timestamps)
    }

    /// The response in a CertificateStatus (RFC 6066 §8).
    private static func staple(_ body: [UInt8]) throws(TLSWireError) -> [UInt8]? {
        var reader = WireReader(body[...], "a certificate's status")
        guard try reader.number(bytes: 1) == 1 else { return nil }
        let response = Array(try reader.vector(lengthBytes: 3))
        try reader.end()
        return response
    }

    private static func certificates(_ body: [UInt8]) throws(TLSWireError) -> [[UInt8]] {
        let what: StaticText = "the certificates"
        var reader = WireReader(body[...], what)
        var list = WireReader(try reader.vector(lengthBytes: 3), what)
        try reader.end()
        var chain: [[UInt8]] = []
        while !list.isAtEnd {
            guard chain.count < maximumCertificates else { throw .tooLong("the chain") }
            let certificate = Array(try list.vector(lengthBytes: 3))
            guard !certificate.isEmpty else { throw .malformed(what) }
            chain.append(certificate)
        }
        guard !chain.isEmpty else { throw .unprovable("a flight without a certificate") }
        return chain
    }
}

/// NewSessionTicket (RFC 5077 §3.3).
enum SessionTicket {
    /// The ticket in the body of the message; empty: the server gives none after all.
    static func read(_ body: [UInt8]) throws(TLSWireError) -> [UInt8] {
        var reader = WireReader(body[...], "a ticket")
        _ = try reader.number(bytes: 4)
        let ticket = Array(try reader.vector(lengthBytes: 2))
        try reader.end()
        return ticket
    }
}
