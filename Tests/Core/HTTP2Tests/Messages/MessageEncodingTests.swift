import HTTPCore
import Testing

@testable import HTTP2

/// A request to encode.
private struct Request {
    var method = "GET"
    var scheme: Scheme? = .https
    var authority = "a.example"
    var path = "/"
    var protocolName = ""
    var lines = ""

    func encode(by pair: inout EncoderPair) throws -> [DecodedField] {
        let parts = [method, authority, path, protocolName, lines].map { Array($0.utf8) }
        let (method, authority, path) = (parts[0], parts[1], parts[2])
        let (protocolName, lines) = (parts[3], parts[4])
        try pair.write { encoder, writer in
            encoder.encodeRequest(
                method: method.span, scheme: scheme, authority: authority.span, path: path.span,
                protocolName: protocolName.span, lines: lines.span, into: &writer)
        }
        return try pair.reference.decode(pair.block)
    }
}

@Suite("Messages are encoded")
struct MessageEncodingTests {
    @Test func `requests, with the pseudo-fields first and without Host`() throws {
        var pair = EncoderPair()
        let request = Request(lines: "Host: a.example\r\nAccept: */*\r\nTE: trailers\r\n")
        for round in 0..<3 {
            let read = try request.encode(by: &pair)
            #expect(
                read.map(\.description) == [
                    ":method: GET", ":authority: a.example", ":scheme: https", ":path: /",
                    "accept: */*", "te: trailers",
                ])
            if round > 0 { #expect(pair.block.count == 6) }
        }
        let other = Request(
            method: "PATCH", scheme: .http, authority: "b.example:81", path: "/x?y",
            lines: "TE: gzip\r\n")
        #expect(
            try other.encode(by: &pair).map(\.description) == [
                ":method: PATCH", ":authority: b.example:81", ":scheme: http", ":path: /x?y",
            ])
        // The authority before is found again only if it is the last one.
        #expect(try request.encode(by: &pair).count == 6)
    }

    @Test func `requests for a tunnel, and for another protocol`() throws {
        var pair = EncoderPair()
        let tunnel = Request(method: "CONNECT", scheme: nil, authority: "a.example:443", path: "")
        #expect(
            try tunnel.encode(by: &pair).map(\.description) == [
                ":method: CONNECT", ":authority: a.example:443",
            ])
        let upgrade = Request(
            method: "CONNECT", path: "/chat", protocolName: "websocket",
            lines: "Connection: upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n")
        #expect(
            try upgrade.encode(by: &pair).map(\.description) == [
                ":method: CONNECT", ":authority: a.example", ":scheme: https", ":path: /chat",
                ":protocol: websocket", "sec-websocket-version: 13",
            ])
    }

    @Test func `requests whose authority is too large for the table, or leaves it`() throws {
        var pair = EncoderPair()
        for count in [100, 5000, 100] {
            let name = String(repeating: "a", count: count)
            for _ in 0..<2 {
                let read = try Request(authority: name).encode(by: &pair)
                #expect(read[1] == DecodedField(":authority", name))
            }
        }
        pair.encoder.peerTableLimit(0)
        pair.reference.largestLimit = 0
        for _ in 0..<2 { #expect(try Request().encode(by: &pair).count == 4) }
    }

    @Test func `responses of every status`() throws {
        var pair = EncoderPair()
        let lines = Array("Content-Length: 0\r\n".utf8)
        for status in UInt16(100)...999 {
            try pair.write { encoder, writer in
                encoder.encodeResponse(status: status, lines: lines.span, into: &writer)
            }
            let read = try pair.reference.decode(pair.block)
            #expect(read.map(\.description) == [":status: \(status)", "content-length: 0"])
        }
    }

    /// The order of heads and that of trailers are remembered apart.
    @Test func `heads and trailers in turn`() throws {
        var pair = EncoderPair()
        let head = Array("Content-Type: application/grpc\r\nX: y\r\n".utf8)
        for round in 0..<3 {
            try pair.write { encoder, writer in
                encoder.encodeResponse(status: 200, lines: head.span, into: &writer)
            }
            #expect(try pair.reference.decode(pair.block).count == 3)
            if round > 0 { #expect(pair.block.count == 3) }
            let read = try pair.fields(["grpc-status: 0", "grpc-message: "])
            #expect(read == [DecodedField("grpc-status", "0"), DecodedField("grpc-message", "")])
            if round > 0 { #expect(pair.block.count == 2) }
        }
    }

    /// What was received is sent on, and received the same.
    @Test func `what was assembled, so that it is assembled again`() throws {
        var pair = EncoderPair()
        var decoder = HeaderDecoder()
        let fields = pseudoFields(adding: [
            ("x", "\u{E9}"), ("cookie", "a=1; b=2"), ("te", "trailers"), ("priority", "u=1"),
        ])
        let made = try request(fields)
        let lines = String(made.text.drop { $0 != "\r\n" }.dropFirst().dropLast())
        let bytes = lines.unicodeScalars.map { UInt8($0.value) }
        for _ in 0..<3 {
            try pair.write { encoder, writer in
                encoder.encodeRequest(
                    method: Array("GET".utf8).span, scheme: .https,
                    authority: Array("a.example".utf8).span, path: Array("/".utf8).span,
                    lines: bytes.span, into: &writer)
            }
            #expect(try request(pair.block, RequestStyle(), by: &decoder).text == made.text)
        }
    }
}
