import HTTPCore
import Testing

@Suite("Fields on their way (RFC 9110 §7.6)")
struct ForwardingTests {
    private func forwarded(
        _ fields: String, omitting omitted: FieldIDSet = []
    ) throws -> String {
        let text = "GET / HTTP/1.1\r\n" + fields + "\r\n"
        let head = try requestHead(text)
        let bytes = latin1(text)
        return written {
            $0.appendForwardedFields(head.fields, of: bytes.span, omitting: omitted)
        }
    }

    @Test func `fields that stay are copied byte for byte`() throws {
        let fields = "hOsT:a\r\nX:  y \t\r\nx:\r\nCookie: a=b; c\r\n"
        #expect(try forwarded(fields) == fields)
    }

    @Test func `hop-by-hop fields go, nominated or not`() throws {
        let fields = """
            Keep-Alive: timeout=5\r
            Host: a\r
            TE: trailers\r
            Connection: x-gone, X-Also\r
            X-Gone: 1\r
            Accept: */*\r
            Proxy-Connection: keep-alive\r
            Proxy-Authorization: Basic x\r
            Trailer: x\r
            x-also: 2\r
            Upgrade: h2c\r
            HTTP2-Settings: AAA\r
            X-Stays: 3\r
            X-Gone: 4\r

            """
        #expect(
            try forwarded(fields) == "Host: a\r\nAccept: */*\r\nTrailer: x\r\nX-Stays: 3\r\n")
    }

    @Test func `hop-by-hop fields are those of the RFCs`() {
        let names: Set<FieldID> = [
            .connection, .proxyConnection, .keepAlive, .te, .transferEncoding, .upgrade,
            .http2Settings, .proxyAuthorization, .proxyAuthenticate, .proxyAuthenticationInfo,
            .disguised,
        ]
        #expect(Set(FieldIDSet.hopByHop.ids) == names)
    }

    /// Only their values matter: no decision depends on them.
    private static let nominable: Set<FieldID> = [
        .userAgent, .referer, .cookie, .origin, .accept, .acceptEncoding, .acceptLanguage, .server,
        .altSvc, .retryAfter, .warning, .allow,
    ]

    @Test func `Connection takes away fields that nothing is decided by`() throws {
        for name in Self.nominable.map({ "\($0.name)" }) {
            let fields = "Connection: \(name), close\r\nHost: a\r\n\(name): 1\r\n"
            #expect(try forwarded(fields) == "Host: a\r\n")
        }
    }

    @Test func `Connection cannot take away fields with a meaning`() throws {
        let known = FieldID.allCases.filter {
            $0 != .other && !FieldIDSet.hopByHop.contains($0) && $0 != .host
                && $0 != .contentLength && $0 != .expect && !Self.nominable.contains($0)
        }
        let names = known.map { "\($0.name)" }
        for name in names + ["Host", "Content-Length"] {
            let rest = names.map { "\($0): 1\r\n" }.joined()
            let kept = "Host: a\r\nContent-Length: 1\r\n" + rest
            #expect(try forwarded("Connection: \(name), close\r\n" + kept) == kept)
        }
    }

    @Test func `what the caller names is dropped too`() throws {
        let fields = "Host: a\r\nVia: 1\r\nX: y\r\nVia: 2\r\nDate: z\r\n"
        #expect(
            try forwarded(fields, omitting: FieldIDSet([.via])) == "Host: a\r\nX: y\r\nDate: z\r\n")
        #expect(
            try forwarded(fields, omitting: FieldIDSet([.host, .date]))
                == "Via: 1\r\nX: y\r\nVia: 2\r\n")
        #expect(
            try forwarded(fields, omitting: FieldIDSet(.other))
                == "Host: a\r\nVia: 1\r\nVia: 2\r\nDate: z\r\n")
        #expect(try forwarded(fields, omitting: FieldIDSet(FieldID.allCases)) == "")
    }

    /// Every subset of a few fields, compared with simply writing them one by one.
    @Test func `runs of kept fields are copied whole and in order`() throws {
        let pool = ["A: 1", "TE: x", "Connection: b", "B: 2", "Via: v", "C:3", "Keep-Alive: 5"]
        for mask in 0..<(1 << pool.count) {
            let lines = pool.indices.filter { mask & (1 << $0) != 0 }.map { pool[$0] }
            let nominates = lines.contains("Connection: b")
            let kept = lines.filter {
                !["TE: x", "Connection: b", "Keep-Alive: 5", "Via: v"].contains($0)
                    && !(nominates && $0 == "B: 2")
            }
            let text = lines.map { $0 + "\r\n" }.joined()
            let expected = kept.map { $0 + "\r\n" }.joined()
            let written = try forwarded("Host: a\r\n" + text, omitting: FieldIDSet([.via, .host]))
            #expect(written == expected)
        }
    }

    @Test func `fields can be written with the hop-by-hop ones`() throws {
        let text = "HTTP/1.1 200 OK\r\nConnection: x\r\nX: 1\r\nTE: y\r\nDate: z\r\n\r\n"
        let head = try responseHead(text)
        let bytes = latin1(text)
        let all = written {
            $0.appendFields(head.fields, of: bytes.span, omitting: [], dropsNominated: false)
        }
        #expect(all == "Connection: x\r\nX: 1\r\nTE: y\r\nDate: z\r\n")
        let some = written {
            $0.appendFields(
                head.fields, of: bytes.span, omitting: FieldIDSet(.date), dropsNominated: true)
        }
        #expect(some == "Connection: x\r\nTE: y\r\n")
        let none = written {
            $0.appendFields(FieldSection(), of: bytes.span, omitting: [], dropsNominated: true)
        }
        #expect(none == "")
    }

    @Test func `trailers that must not come late are dropped`() throws {
        var decoder = ChunkedDecoder()
        let bytes = latin1(
            "0\r\nX-Sum: 1\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\nHost: b\r\n"
                + "Set-Cookie: a\r\nETag: \"x\"\r\nAuthorization: y\r\nServer: z\r\n\r\n")
        #expect(try decoder.decode(bytes.span) == .end(consumed: bytes.count))
        let trailers = try #require(decoder.trailerSection)
        let lines = written { $0.appendForwardedFields(trailers) }
        #expect(lines == "X-Sum: 1\r\nETag: \"x\"\r\nServer: z\r\n")
        #expect(ChunkedDecoder().trailerSection == nil)
        for id in [FieldID.contentLength, .transferEncoding, .host, .authorization, .setCookie] {
            #expect(FieldIDSet.forbiddenInTrailers.contains(id))
        }
        #expect(FieldIDSet.forbiddenInTrailers.isSuperset(of: .hopByHop))
        #expect(!FieldIDSet.forbiddenInTrailers.contains(.other))
    }
}
