/// What a server presents before TLS 1.3: everything needed to verify it.
package struct ServerProof: Hashable, Sendable {
    package var version: UInt16
    package var suite: UInt16
    /// In DER, the server's own certificate first.
    package var chain: [[UInt8]]
    /// Its key for this handshake; `nil` if the certificate's own key is used
    /// (``ServerProofKind``).
    package var keyExchange: ServerKeyExchange?
    /// What the signature covers before the parameters.
    package var randoms: [UInt8]
    /// The session's identifier, for resumption; empty if there is none.
    package var sessionID: [UInt8]
    /// The OCSP response that it stapled, in DER (RFC 6066 §8); `nil` if there is none that can be
    /// read.
    package var staple: [UInt8]?
    /// The SCTs of Certificate Transparency, as in the ServerHello's extension.
    package var timestamps: [UInt8]?
}

/// A server's answer to a ClientHello, up to where it is known what the server proves: its flight
/// before TLS 1.3, or the first message of a later version, which shows nothing (RFC 5246 §7.3).
package struct ServerFlight {
    /// The kind of answer.
    package enum Finding: Hashable, Sendable {
        /// The whole flight, and its contents.
        case presented(ServerProof)
        /// The session that the client offered is resumed: nothing new is proved.
        case resumed(version: UInt16)
        /// TLS 1.3: the proof is encrypted.
        case encrypted
        /// The server aborts.
        case alert(code: UInt8)
    }

    private enum Step { case hello, certificate, keyExchange, request, done, ended }

    /// The maximum number of certificates.
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
    /// The new ticket of a resumed session.
    package private(set) var ticket: [UInt8] = []
    /// The bytes that arrived with and after the ServerHello of TLS 1.3.
    private var behind: [UInt8] = []

    package init(
        answering hello: ClientHello, limits: HandshakeStream.Limits = HandshakeStream.Limits()
    ) {
        self.hello = hello
        stream = HandshakeStream(limits: limits)
    }

    /// The ServerHello, which shows where the client's session may have been seen before.
    package var serverHello: ServerHello? { server }

    /// Consumes the next bytes from the server; returns `nil` if more are needed.
    ///
    /// - Throws: for what cannot be followed, or must not be.
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
                    // A client would interpret further plain text differently.
                    if case .presented = finding, !rest.isEmpty || !stream.isBetweenMessages {
                        throw .unexpected("data after the flight")
                    }
                    return finding
                }
            }
        }
        return nil
    }

    /// The continuation, if the server sent a HelloRetryRequest; otherwise `nil`.
    ///
    /// - Parameter readsEncryptedHello: whether the server may be able to read an encrypted
    ///   ClientHello.
    /// - Throws: for a HelloRetryRequest that no client would follow, and for anything that must
    ///   not come after it.
    package func retry(readsEncryptedHello: Bool) throws(TLSWireError) -> HelloRetry? {
        guard let server, server.isHelloRetryRequest else { return nil }
        let request = try HelloRetryRequest(server, answering: hello)
        guard stream.isBetweenMessages else {
            throw .unexpected("data after a HelloRetryRequest")
        }
        var retry = HelloRetry(
            of: hello, by: request, readsEncryptedHello: readsEncryptedHello)
        let answer = try behind.withUnsafeBufferPointer { bytes throws(TLSWireError) in
            try retry.takeFromServer(UnsafeRawBufferPointer(bytes))
        }
        guard answer == nil else {
            throw .unexpected("an alert after a HelloRetryRequest")
        }
        return retry
    }

    private mutating func cipherChanges() throws(TLSWireError) -> Finding {
        guard step == .certificate, let server, isResumption(server) else {
            throw .unexpected("a ChangeCipherSpec")
        }
        step = .ended
        return .resumed(version: server.version)
    }

    /// Whether the server may be accepting what the client offered: the session by its identifier,
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
    /// The ticket in the body of the message; empty if the server decided not to give one.
    static func read(_ body: [UInt8]) throws(TLSWireError) -> [UInt8] {
        var reader = WireReader(body[...], "a ticket")
        _ = try reader.number(bytes: 4)
        let ticket = Array(try reader.vector(lengthBytes: 2))
        try reader.end()
        return ticket
    }
}
