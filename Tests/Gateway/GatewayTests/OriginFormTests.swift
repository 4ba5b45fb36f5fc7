import EngineTestSupport
import Testing

@testable import Gateway
@testable import PinfoldEngine

@Suite("A response that is stored as the origin sent it")
struct OriginFormTests {
    private static let toPlist =
        "cache: { form: origin }, response: { body: { from: json, to: plist } }"
    private static let fresh = "Cache-Control: max-age=60\r\nETag: \"v1\"\r\n"
    /// More than is processed at once.
    private static let large = "[" + String(repeating: "1,", count: 10_000) + "1]"

    private func request(
        _ ruled: RuledWorker, _ fields: String = "", method: String = "GET"
    ) -> String {
        "\(method) http://\(ruled.server.host):\(ruled.server.port)/a HTTP/1.1\r\n"
            + "Host: a.test\r\n\(fields)\r\n"
    }

    private func response(
        _ content: String, type: String = "application/json", fields: String = Self.fresh
    ) -> String {
        "HTTP/1.1 200 OK\r\nContent-Type: \(type)\r\n\(fields)"
            + "Content-Length: \(content.utf8.count)\r\n\r\n\(content)"
    }

    private func content(_ message: String) -> String {
        message.firstRange(of: "\r\n\r\n").map { String(message[$0.upperBound...]) } ?? ""
    }

    private func field(_ name: String, of text: String) -> String? {
        text.firstRange(of: "\r\n\(name): ").map {
            String(text[$0.upperBound...].prefix { !$0.isNewline })
        }
    }

    /// A worker that has stored a response, the client that received its translation, and the
    /// server.
    private func stored(
        _ body: String = "{\"a\":true}", rules: String = Self.toPlist, fields: String = Self.fresh,
        maximumHeldBytes: Int = 1 << 30, beside: String = ""
    ) throws -> (ruled: RuledWorker, client: Peer, peer: Peer, first: String) {
        let ruled = try RuledWorker(
            rules, caches: true, maximumHeldBytes: maximumHeldBytes, beside: beside)
        let (client, peer, _) = try ruled.forward(request(ruled))
        peer.send(response(body, fields: fields))
        if body.utf8.count > 16 << 10 {
            ruled.still.turn(until: "the work waits") { ruled.work.count == 1 }
            ruled.work.run()
        }
        ruled.still.await("</plist>", at: client)
        #expect(ruled.still.worker.metrics.value(.cacheStores) == 1)
        let first = client.text
        client.forget()
        peer.forget()
        return (ruled, client, peer, first)
    }

    private func ask(
        _ ruled: RuledWorker, _ client: Peer, _ fields: String = "", method: String = "GET",
        until text: String = "</plist>"
    ) -> String {
        client.forget()
        client.send(request(ruled, fields, method: method))
        ruled.still.await(text, at: client)
        return client.text
    }

    // MARK: Hits

    @Test func `counts among what its client may have under way while it is translated`() throws {
        let (ruled, client, _, _) = try stored(
            Self.large, beside: "limits: { perClient: { exchanges: 1 } }")
        client.send(request(ruled))
        ruled.still.turn(until: "the work waits") { ruled.work.count == 1 }
        let other = try ruled.still.client()
        other.send(request(ruled))
        ruled.still.await("client-exchange-limit", at: other)
        #expect(other.text.hasPrefix("HTTP/1.1 503 "))
        ruled.work.run()
        ruled.still.await("</plist>", at: client)
        #expect(client.text.hasPrefix("HTTP/1.1 200 "))
    }

    @Test func `is translated for each client, in every form that it asks for`() throws {
        let (ruled, client, peer, first) = try stored()
        let plist = content(first)
        let tag = try #require(field("ETag", of: first))
        #expect(tag.hasPrefix("\"v1-") && tag.count == "\"v1-12345678\"".count)
        #expect(field("Content-Length", of: first) == "\(plist.utf8.count)")

        let hit = ask(ruled, client)
        #expect(content(hit) == plist)
        #expect(field("ETag", of: hit) == tag && field("Age", of: hit) != nil)
        #expect(field("Content-Type", of: hit) == field("Content-Type", of: first))
        #expect(field("Content-Length", of: hit) == "\(plist.utf8.count)")
        #expect(field("Cache-Status", of: hit)?.contains("hit") ?? false)

        let confirmed = ask(ruled, client, "If-None-Match: \(tag)\r\n", until: "\r\n\r\n")
        #expect(confirmed.hasPrefix("HTTP/1.1 304") && field("ETag", of: confirmed) == tag)
        let other = ask(ruled, client, "If-None-Match: \"v1\"\r\n")
        #expect(other.hasPrefix("HTTP/1.1 200") && content(other) == plist)
        let part = ask(
            ruled, client, "Range: bytes=0-4\r\nIf-Range: \(tag)\r\n", until: "\r\n\r\n<?xml")
        #expect(part.hasPrefix("HTTP/1.1 206") && content(part) == "<?xml")
        #expect(field("Content-Range", of: part) == "bytes 0-4/\(plist.utf8.count)")
        let whole = ask(ruled, client, "Range: bytes=0-4\r\nIf-Range: \"v1\"\r\n")
        #expect(whole.hasPrefix("HTTP/1.1 200") && content(whole) == plist)
        let head = ask(ruled, client, method: "HEAD", until: "\r\n\r\n")
        #expect(field("Content-Length", of: head) == "\(plist.utf8.count)")
        #expect(field("ETag", of: head) == tag && content(head) == "")
        #expect(peer.read() == "")
    }

    @Test func `a client that has the translation costs none`() throws {
        let (ruled, client, _, first) = try stored(Self.large)
        let tag = try #require(field("ETag", of: first))
        let reply = ask(ruled, client, "If-None-Match: \"x\", \(tag)\r\n", until: "\r\n\r\n")
        #expect(reply.hasPrefix("HTTP/1.1 304"))
        #expect(ruled.work.count == 0)
    }

    @Test func `is confirmed by the origin's own tag`() throws {
        let (ruled, client, peer, first) = try stored(
            fields: "Cache-Control: max-age=0\r\nETag: \"v1\"\r\n")
        let tag = try #require(field("ETag", of: first))
        for fields in ["", "If-None-Match: \"other\"\r\n", "If-None-Match: \(tag)\r\n"] {
            client.forget()
            peer.forget()
            client.send(request(ruled, fields))
            ruled.still.await("\r\n\r\n", at: peer)
            #expect(peer.text.ranges(of: "\r\nIf-None-Match: \"v1\"\r\n").count == 1)
            #expect(!peer.text.contains("other") && !peer.text.contains("v1-"))
            peer.send("HTTP/1.1 304 Not Modified\r\nETag: \"v1\"\r\n\r\n")
            let knows = fields.contains("v1-")
            ruled.still.await(knows ? "\r\n\r\n" : "</plist>", at: client)
            #expect(client.text.hasPrefix(knows ? "HTTP/1.1 304" : "HTTP/1.1 200"))
            #expect(field("ETag", of: client.text) == tag)
            #expect(content(client.text) == (knows ? "" : content(first)))
        }
    }

    @Test func `is served, translated, in place of a server that fails`() throws {
        let (ruled, client, peer, first) = try stored(
            fields: "Cache-Control: max-age=0, stale-if-error=60\r\nETag: \"v1\"\r\n")
        client.send(request(ruled))
        ruled.still.await("\r\n\r\n", at: peer)
        peer.send("HTTP/1.1 503 Sorry\r\nContent-Length: 0\r\n\r\n")
        ruled.still.await("</plist>", at: client)
        #expect(client.text.hasPrefix("HTTP/1.1 200"))
        #expect(content(client.text) == content(first))
        #expect(field("ETag", of: client.text) == field("ETag", of: first))
    }

    @Test func `is sent as it was stored where no rule applies to it`() throws {
        let ruled = try RuledWorker(Self.toPlist, caches: true)
        let (client, peer, _) = try ruled.forward(request(ruled))
        peer.send(response("{\"a\":1}", type: "text/plain"))
        ruled.still.await("}", at: client)
        peer.forget()
        let hit = ask(ruled, client, until: "}")
        #expect(field("ETag", of: hit) == "\"v1\"" && content(hit) == "{\"a\":1}")
        let part = ask(ruled, client, "Range: bytes=1-3\r\n", until: "\"a\"")
        #expect(part.hasPrefix("HTTP/1.1 206") && content(part) == "\"a\"")
        let known = ask(ruled, client, "If-None-Match: \"v1\"\r\n", until: "\r\n\r\n")
        #expect(known.hasPrefix("HTTP/1.1 304"))
        #expect(peer.read() == "")
    }

    @Test func `is sent as it was stored where nothing in it changes`() throws {
        let ruled = try RuledWorker(
            "cache: { form: origin }, response: { body: "
                + "{ from: json, to: json, removesKeysWithNullValues: true } }", caches: true)
        let (client, peer, _) = try ruled.forward(request(ruled))
        peer.send(response("{\"a\": 1}"))
        ruled.still.await("}", at: client)
        #expect(field("ETag", of: client.text) == "\"v1\"")
        let hit = ask(ruled, client, until: "}")
        #expect(field("ETag", of: hit) == "\"v1\"" && content(hit) == "{\"a\": 1}")
        let known = ask(ruled, client, "If-None-Match: \"v1\"\r\n", until: "\r\n\r\n")
        #expect(known.hasPrefix("HTTP/1.1 304"))
    }

    @Test func `conditions are mapped though another protocol is asked for`() throws {
        let ruled = try RuledWorker(Self.toPlist + ", switchProtocols: allow")
        let (client, peer, asked) = try ruled.forward(
            request(
                ruled,
                "Connection: Upgrade\r\nUpgrade: chat\r\nIf-None-Match: \"v1\"\r\n"))
        #expect(!asked.contains("If-None-Match"))
        peer.send(response("[1]"))
        ruled.still.await("</plist>", at: client)
    }

    // MARK: What is stored

    @Test func `is not stored where it is refused`() throws {
        let ruled = try RuledWorker(Self.toPlist, caches: true)
        let (client, peer, _) = try ruled.forward(request(ruled))
        peer.send(response("{\"a\":tru"))
        ruled.still.await("\nid: ", at: client)
        #expect(client.text.contains("502 response-body-invalid"))
        #expect(ruled.still.worker.metrics.value(.cacheStores) == 0)
    }

    @Test func `that a HEAD brings up to date is still translated`() throws {
        let (ruled, client, peer, first) = try stored(
            fields: "Cache-Control: max-age=0\r\nETag: \"v1\"\r\n")
        client.send(request(ruled, method: "HEAD"))
        ruled.still.await("\r\n\r\n", at: peer)
        peer.send(
            "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\(Self.fresh)"
                + "Content-Length: 10\r\n\r\n")
        ruled.still.await("\r\n\r\n", at: client)
        #expect(field("ETag", of: client.text) == field("ETag", of: first))
        let hit = ask(ruled, client)
        #expect(content(hit) == content(first))
        #expect(field("ETag", of: hit) == field("ETag", of: first))
    }

    // MARK: Other threads

    @Test func `is translated beside the worker where it is large`() throws {
        let (ruled, client, peer, first) = try stored(Self.large)
        client.send(request(ruled))
        ruled.still.turn(until: "the work waits") { ruled.work.count == 1 }
        // Others continue in the meantime.
        let other = try ruled.still.client()
        other.send(request(ruled, "Cache-Control: no-cache\r\n", method: "HEAD"))
        ruled.still.await("HEAD /a ", at: peer)
        ruled.work.run()
        ruled.still.await("</plist>", at: client)
        #expect(content(client.text) == content(first))
    }

    @Test func `whose client disconnects meanwhile leaves nothing behind`() throws {
        let (ruled, client, _, first) = try stored(Self.large, maximumHeldBytes: 50_000)
        for _ in 0..<3 {
            let gone = try ruled.still.client()
            gone.send(request(ruled))
            ruled.still.turn(until: "the work waits") { ruled.work.count == 1 }
            gone.reset()
            ruled.still.turn(until: "it is over") {
                ruled.still.worker.metrics.value(.exchangesInFlight) == 0
            }
            ruled.work.run()
        }
        client.send(request(ruled))
        ruled.still.turn(until: "the work waits") { ruled.work.count == 1 }
        ruled.work.run()
        ruled.still.await("</plist>", at: client)
        #expect(content(client.text) == content(first))
    }

    @Test func `is refused where too much is held, and is still there`() throws {
        let (ruled, client, peer, first) = try stored(Self.large, maximumHeldBytes: 30_000)
        client.send(request(ruled))
        ruled.still.turn(until: "the work waits") { ruled.work.count == 1 }
        let other = try ruled.still.client()
        other.send(request(ruled))
        ruled.still.await("\nid: ", at: other)
        #expect(other.text.contains("503 transformation-overloaded"))
        ruled.work.run()
        ruled.still.await("</plist>", at: client)
        ruled.work.refuse()
        let refused = ask(ruled, client, until: "\nid: ")
        #expect(refused.contains("503 transformation-overloaded"))
        let tag = try #require(field("ETag", of: first))
        let known = ask(ruled, client, "If-None-Match: \(tag)\r\n", until: "\r\n\r\n")
        #expect(known.hasPrefix("HTTP/1.1 304"))
        #expect(peer.read() == "")
    }

    @Test func `those who wait for one response are each sent its translation`() throws {
        let ruled = try RuledWorker(Self.toPlist, caches: true)
        let (client, peer, _) = try ruled.forward(request(ruled))
        let others = try (0..<3).map { _ in try ruled.still.client() }
        for other in others { other.send(request(ruled)) }
        ruled.still.turn(until: "they wait") {
            ruled.still.worker.metrics.value(.cacheCollapseWaits) == 3
        }
        peer.send(response("[\"b\"]"))
        for one in [client] + others {
            ruled.still.await("</plist>", at: one)
            #expect(content(one.text) == content(client.text))
            #expect(field("ETag", of: one.text) == field("ETag", of: client.text))
        }
        #expect(peer.read().ranges(of: "GET ").count == 1)
    }
}
