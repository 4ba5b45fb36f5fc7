import COpenSSL
import HTTPCore
import Testing

@testable import PinfoldTLS

@Suite("What a connection is agreed to carry (RFC 7301)")
struct ProtocolOfferTests {
    private static func client(_ offer: ProtocolOffer) throws -> TLSClientContext {
        var settings = TLSClientSettings()
        settings.applicationProtocols = offer.names
        return try TLSClientContext(settings, roots: PKI.roots(PKI.root))
    }

    /// What both sides agree on, by the rule: HTTP/2 if both may, otherwise HTTP/1 if both may;
    /// `nil` if there is nothing.
    private static func agreement(_ one: ProtocolOffer, _ other: ProtocolOffer) -> HTTPCarrier? {
        if one != .http1, other != .http1 { return .http2 }
        return one != .http2 && other != .http2 ? .http1 : nil
    }

    @Test(arguments: ProtocolOffer.allCases)
    func `the names are encoded as the library encodes them`(_ offer: ProtocolOffer) throws {
        #expect(try Array(offer.wire) == LibraryContext.wireForm(offer.names))
    }

    @Test(arguments: ProtocolOffer.allCases, ProtocolOffer.allCases)
    func `the best that both sides have is agreed on, and otherwise nothing`(
        _ offered: ProtocolOffer, _ served: ProtocolOffer
    ) throws {
        let pair = try Pair(client: Self.client(offered), server: .make(protocols: served.names))
        let expected = Self.agreement(offered, served)
        #expect(pair.opens() == (expected != nil))
        guard let expected else {
            #expect(pair.server.sentAlert == TLSAlert(code: 120))
            return
        }
        #expect(pair.client.carrier == expected && pair.server.carrier == expected)
        #expect(pair.client.applicationProtocol == (expected == .http2 ? "h2" : "http/1.1"))
    }

    @Test(arguments: ProtocolOffer.allCases, ProtocolOffer.allCases)
    func `a connection has its own offer in place of its context's`(
        _ offered: ProtocolOffer, _ served: ProtocolOffer
    ) throws {
        // The contexts agree on the opposite.
        let other: ProtocolOffer = Self.agreement(offered, served) == .http2 ? .http1 : .http2
        let pair = try Pair(
            client: Self.client(other), server: .make(protocols: other.names),
            offers: (offered, served))
        let expected = Self.agreement(offered, served)
        #expect(pair.opens() == (expected != nil))
        if let expected {
            #expect(pair.client.carrier == expected && pair.server.carrier == expected)
        }
    }

    @Test(arguments: ProtocolOffer.allCases)
    func `with a client that has no ALPN, HTTP/1 is spoken`(_ served: ProtocolOffer) throws {
        var settings = TLSClientSettings()
        settings.applicationProtocols = []
        let client = try TLSClientContext(settings, roots: PKI.roots(PKI.root))
        let pair = try Pair(client: client, server: .make(protocols: served.names))
        #expect(pair.opens())
        #expect(pair.client.carrier == .http1 && pair.server.carrier == .http1)
    }

    @Test func `other protocols are HTTP/1's affair`() throws {
        var settings = TLSClientSettings()
        settings.applicationProtocols = ["h3", "h22", "h"]
        for name in settings.applicationProtocols {
            let client = try TLSClientContext(settings, roots: PKI.roots(PKI.root))
            let pair = try Pair(client: client, server: .make(protocols: [name]))
            #expect(pair.opens())
            #expect(pair.client.applicationProtocol == name)
            #expect(pair.client.carrier == .http1 && pair.server.carrier == .http1)
        }
    }

    // MARK: Resumption

    private static let versions = [TLS1_2_VERSION, TLS1_3_VERSION]
    private static let changes: [(ProtocolOffer, ProtocolOffer)] = [
        (.http1, .http2), (.http2, .http1), (.either, .http1), (.http1, .either),
    ]

    /// One connection of the library's client; returns its session, which the caller frees.
    private static func visit(
        _ context: TLSServerContext, version: Int32, offering offer: ProtocolOffer,
        session: OpaquePointer? = nil
    ) throws -> (session: OpaquePointer?, isResumed: Bool, carrier: HTTPCarrier) {
        let sockets = SocketPair()
        let client = LibraryClient(descriptor: sockets.far, version: version)
        SSL_set_alpn_protos(client.ssl, offer.wire.baseAddress, UInt32(offer.wire.count))
        if let session { SSL_set_session(client.ssl, session) }
        let server = try TLSServerConnection(
            context: context, fileDescriptor: sockets.near, offer: offer)
        #expect(client.open(server) == .complete)
        #expect(server.write("x") == .bytes(1))
        var byte: UInt8 = 0
        #expect(SSL_read(client.ssl, &byte, 1) == 1)
        let kept = SSL_get1_session(client.ssl)
        SSL_shutdown(client.ssl)
        return (kept, server.isResumed, server.carrier)
    }

    @Test(arguments: versions, changes)
    func `a client may resume its session with another protocol`(
        _ version: Int32, _ change: (before: ProtocolOffer, after: ProtocolOffer)
    ) throws {
        var settings = TLSServerSettings()
        settings.applicationProtocols = ProtocolOffer.either.names
        let identity = try TLSServerIdentity(
            certificate: PKI.leaf.x509, chain: [PKI.intermediate.x509], key: PKI.leaf.key)
        let context = try TLSServerContext(
            settings, source: TLSIdentityList([identity]),
            ticketKeys: TLSTicketKeys(now: { 1_000_000 }))
        let first = try Self.visit(context, version: version, offering: change.before)
        defer { SSL_SESSION_free(first.session) }
        #expect(!first.isResumed)
        #expect(first.carrier == (change.before == .http1 ? .http1 : .http2))
        let second = try Self.visit(
            context, version: version, offering: change.after, session: first.session)
        defer { SSL_SESSION_free(second.session) }
        #expect(second.isResumed)
        #expect(second.carrier == (change.after == .http1 ? .http1 : .http2))
    }

    @Test func `a session is not offered to a server again with other protocols`() throws {
        let sessions = TLSSessionCache()
        let client = try TLSClientContext.make(sessions: sessions)
        let identity = try TLSServerIdentity(
            certificate: PKI.leaf.x509, chain: [PKI.intermediate.x509], key: PKI.leaf.key)
        var settings = TLSServerSettings()
        settings.applicationProtocols = ProtocolOffer.either.names
        let server = try TLSServerContext(
            settings, source: TLSIdentityList([identity]),
            ticketKeys: TLSTicketKeys(now: { 1_000_000 }))
        func isResumed(offering offer: ProtocolOffer?) throws -> Bool {
            let pair = try Pair(client: client, server: server, offers: (offer, nil))
            #expect(pair.opens())
            #expect(pair.server.write("x") == .bytes(1))
            #expect(pair.client.readAll().bytes == Array("x".utf8))
            return pair.client.isResumed
        }
        #expect(try !isResumed(offering: .either))
        #expect(try !isResumed(offering: .http1))
        #expect(try !isResumed(offering: nil))
        #expect(try isResumed(offering: .http1))
        #expect(try isResumed(offering: .either))
        #expect(try isResumed(offering: nil))
    }
}
