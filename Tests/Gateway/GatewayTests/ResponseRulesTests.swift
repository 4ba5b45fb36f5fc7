import EngineTestSupport
import Testing

@testable import Gateway
@testable import PinfoldEngine

@Suite("A response on a route with rules")
struct ResponseRulesTests {
    private func request(
        _ ruled: RuledWorker, _ fields: String = "", method: String = "GET", path: String = "/a"
    ) -> String {
        "\(method) http://\(ruled.server.host):\(ruled.server.port)\(path) HTTP/1.1\r\n"
            + "Host: a.test\r\n\(fields)\r\n"
    }

    private func response(
        _ content: String, status: String = "200 OK", type: String = "application/json",
        fields: String = ""
    ) -> String {
        "HTTP/1.1 \(status)\r\nContent-Type: \(type)\r\n\(fields)"
            + "Content-Length: \(content.utf8.count)\r\n\r\n\(content)"
    }

    private func content(_ message: String) -> String {
        message.firstRange(of: "\r\n\r\n").map { String(message[$0.upperBound...]) } ?? ""
    }

    private static let fresh = "Cache-Control: max-age=60\r\nETag: \"v1\"\r\n"
    private func stores(_ ruled: RuledWorker) -> UInt64 {
        ruled.still.worker.metrics.value(.cacheStores)
    }

    // MARK: Refused

    private static let checked =
        "response: { statusCodes: [200], contentTypes: [application/json], validate: json }"

    @Test(arguments: [
        ("503 Sorry", "application/json", "{}", "response-status-refused"),
        ("200 OK", "text/html", "<html>Log in</html>", "response-type-refused"),
        ("200 OK", "application/json", "{\"a\":[1,2,]}", "response-body-invalid"),
        ("200 OK", "application/json", "", ""),
    ])
    func `is refused, and not stored, unless it is what the route accepts`(
        status: String, type: String, body: String, reason: String
    ) throws {
        let ruled = try RuledWorker(Self.checked, caches: true)
        let (client, peer, _) = try ruled.forward(request(ruled))
        peer.send(response(body, status: status, type: type, fields: Self.fresh))
        guard !reason.isEmpty else {
            ruled.still.await("\r\n\r\n", at: client)
            #expect(client.text.hasPrefix("HTTP/1.1 200"))
            return
        }
        ruled.still.await("\nid: ", at: client)
        #expect(client.text.hasPrefix("HTTP/1.1 502 "))
        #expect(client.text.contains("502 \(reason)"))
        #expect(stores(ruled) == 0)
        // The next one is requested, and passes.
        client.forget()
        client.send(request(ruled))
        // A connection whose response was read completely can be reused.
        let again =
            reason == "response-body-invalid" ? peer : try ruled.still.peer(of: ruled.server)
        again.forget()
        ruled.still.await("\r\n\r\n", at: again)
        again.send(response("{\"a\":[1,2]}", fields: Self.fresh))
        ruled.still.await("[1,2]}", at: client)
        #expect(stores(ruled) == 1)
    }

    @Test func `that cannot be read is refused with the place and some of the content`() throws {
        let ruled = try RuledWorker(Self.checked)
        let (client, peer, _) = try ruled.forward(request(ruled))
        peer.send(response("{\n  \"a\": tru\n}"))
        ruled.still.await("\nid: ", at: client)
        #expect(client.text.contains("line 2, column"))
        #expect(client.text.contains("\ncontent: {   \"a\": tru }\n"))
    }

    @Test func `gives the client nothing before its end has been checked`() throws {
        let ruled = try RuledWorker(Self.checked)
        let (client, peer, _) = try ruled.forward(request(ruled))
        let whole = response("[\"a\",\"b\"]")
        for part in [whole.prefix(20), whole.dropFirst(20).dropLast(3)] {
            ruled.still.deliver(part, from: peer)
            #expect(client.read() == "")
        }
        peer.send(whole.suffix(3))
        ruled.still.await("[\"a\",\"b\"]", at: client)
        #expect(client.text.contains("\r\nContent-Length: 9\r\n"))
    }

    @Test func `that ends too early is refused`() throws {
        let ruled = try RuledWorker(Self.checked)
        let (client, peer, _) = try ruled.forward(request(ruled))
        ruled.still.deliver(response("[1,2]").dropLast(2), from: peer)
        peer.close()
        ruled.still.await("\nid: ", at: client)
        #expect(client.text.contains("502 "))
        #expect(client.text.contains("truncated"))
    }

    @Test func `is not checked where it has no content`() throws {
        let ruled = try RuledWorker(
            "response: { contentTypes: [application/json], validate: json }")
        let (client, peer, _) = try ruled.forward(request(ruled))
        peer.send("HTTP/1.1 204 No Content\r\n\r\n")
        ruled.still.await("\r\n\r\n", at: client)
        #expect(client.text.hasPrefix("HTTP/1.1 204"))
    }

    // MARK: Large

    @Test func `that is larger than what is looked at is refused, or passed on`() throws {
        let body = "[" + String(repeating: "1,", count: 2000) + "1]"
        for (larger, isChunked) in [
            ("refuse", false), ("refuse", true), ("pass", false), ("pass", true),
        ] {
            let ruled = try RuledWorker(
                "response: { validate: json, maximum: 1KiB, larger: \(larger) }")
            let (client, peer, _) = try ruled.forward(request(ruled))
            if isChunked {
                let head =
                    "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
                    + "Transfer-Encoding: chunked\r\n\r\n"
                peer.send(head)
                for part in [
                    body.prefix(500), body.dropFirst(500).prefix(800), body.dropFirst(1300),
                ] {
                    guard !peer.hasEnded else { break }
                    peer.send("\(String(part.utf8.count, radix: 16))\r\n\(part)\r\n")
                    ruled.still.settle()
                }
                if !peer.hasEnded { peer.send("0\r\n\r\n") }
            } else {
                peer.send(response(body))
            }
            if larger == "refuse" {
                ruled.still.await("\nid: ", at: client)
                #expect(client.text.contains("502 response-body-too-large"))
            } else {
                ruled.still.await(isChunked ? "\r\n0\r\n\r\n" : "1,1]", at: client)
                let received = content(client.text)
                #expect((isChunked ? unchunked(received) : received) == body)
            }
        }
    }

    @Test func `is refused where all of them together hold too much`() throws {
        let ruled = try RuledWorker("response: { validate: json }", maximumHeldBytes: 4096)
        let (client, peer, _) = try ruled.forward(request(ruled))
        peer.send(response("[" + String(repeating: "1,", count: 4000) + "1]"))
        ruled.still.await("\nid: ", at: client)
        #expect(client.text.contains("503 transformation-overloaded"))
        // What it held is released.
        client.forget()
        client.send(request(ruled))
        let next = try ruled.still.peer(of: ruled.server)
        ruled.still.await("\r\n\r\n", at: next)
        next.send(response("[1]"))
        ruled.still.await("[1]", at: client)
    }

    @Test func `is refused where its lines of Content-Type contradict each other`() throws {
        let ruled = try RuledWorker("response: { contentTypes: [application/json] }")
        let (client, peer, _) = try ruled.forward(request(ruled))
        peer.send(response("<html>", fields: "Content-Type: text/html\r\n"))
        ruled.still.await("\nid: ", at: client)
        #expect(client.text.contains("502 response-type-refused"))
    }

    @Test(arguments: [("text/html", "{}"), ("application/json", "{")])
    func `that is refused has changed what it has changed`(type: String, body: String) throws {
        let ruled = try RuledWorker(
            "response: { contentTypes: [application/json], validate: json }", caches: true)
        let (client, peer, _) = try ruled.forward(request(ruled))
        ruled.answer(client, peer, response("[1]", fields: Self.fresh), until: "[1]")
        #expect(stores(ruled) == 1)
        client.forget()
        peer.forget()
        client.send(request(ruled, "Content-Length: 0\r\n", method: "POST"))
        ruled.still.await("\r\n\r\n", at: peer)
        peer.send(response(body, type: type))
        ruled.still.await("\nid: ", at: client)
        #expect(ruled.still.worker.metrics.value(.cacheInvalidations) > 0)
    }

    // MARK: On another thread

    @Test func `is checked on another thread where it is long`() throws {
        let ruled = try RuledWorker(Self.checked)
        let body = "[" + String(repeating: "1,", count: 10_000) + "1]"
        let (client, peer, _) = try ruled.forward(request(ruled))
        peer.send(response(body))
        ruled.still.turn(until: "the work waits") { ruled.work.count == 1 }
        #expect(client.read() == "")
        // The connection serves others in the meantime.
        let other = try ruled.still.client()
        other.send(request(ruled, path: "/b"))
        ruled.still.await("GET /b ", at: peer)
        peer.send(response("[2]"))
        ruled.still.await("[2]", at: other)
        ruled.work.run()
        ruled.still.await("1,1]", at: client)
        #expect(content(client.text) == body)
    }

    @Test func `whose client has gone ends with its work`() throws {
        let ruled = try RuledWorker(Self.checked)
        let (client, peer, _) = try ruled.forward(request(ruled))
        peer.send(response("[" + String(repeating: "1,", count: 10_000) + "1]"))
        ruled.still.turn(until: "the work waits") { ruled.work.count == 1 }
        client.close()
        ruled.still.settle()
        ruled.work.run()
        ruled.still.turn(until: "it is over") {
            ruled.still.worker.metrics.value(.exchangesInFlight) == 0
        }
        let next = try ruled.still.client()
        next.send(request(ruled))
        ruled.still.turn(until: "it is asked for") { peer.read().ranges(of: "GET ").count == 2 }
        peer.send(response("[3]"))
        ruled.still.await("[3]", at: next)
    }

    @Test func `to a change outdates what is stored though its client does not wait`() throws {
        let ruled = try RuledWorker(Self.checked, caches: true)
        let (client, peer, _) = try ruled.forward(request(ruled))
        peer.send(response("[1]", fields: Self.fresh))
        ruled.still.await("[1]", at: client)
        let other = try ruled.still.client()
        peer.forget()
        other.send(request(ruled, "Content-Length: 0\r\n", method: "POST"))
        ruled.still.await("\r\n\r\n", at: peer)
        peer.send(response("[" + String(repeating: "1,", count: 10_000) + "1]"))
        ruled.still.turn(until: "the work waits") { ruled.work.count == 1 }
        other.reset()
        ruled.still.turn(until: "it is over") {
            ruled.still.worker.metrics.value(.exchangesInFlight) == 0
        }
        #expect(ruled.still.worker.metrics.value(.cacheInvalidations) == 1)
        client.forget()
        peer.forget()
        client.send(request(ruled))
        ruled.still.await("GET /a ", at: peer)
        // Work retains the worker that it is for until it is done.
        ruled.work.run()
    }

    @Test func `counts as held until the work on it ends, even if its client has gone`() throws {
        let ruled = try RuledWorker(Self.checked, maximumHeldBytes: 30_000)
        let (client, peer, _) = try ruled.forward(request(ruled))
        let body = "[" + String(repeating: "1,", count: 10_000) + "1]"
        peer.send(response(body))
        ruled.still.turn(until: "the work waits") { ruled.work.count == 1 }
        client.reset()
        ruled.still.turn(until: "it is over") {
            ruled.still.worker.metrics.value(.exchangesInFlight) == 0
        }
        let next = try ruled.still.client()
        peer.forget()
        next.send(request(ruled))
        ruled.still.await("\r\n\r\n", at: peer)
        peer.send(response(body))
        ruled.still.await("\nid: ", at: next)
        #expect(next.text.contains("503 transformation-overloaded"))
        ruled.work.run()
        next.forget()
        next.send(request(ruled))
        let other = try ruled.still.peer(of: ruled.server)
        ruled.still.await("\r\n\r\n", at: other)
        other.send(response(body))
        ruled.still.turn(until: "the work waits") { ruled.work.count == 1 }
        ruled.work.run()
        ruled.still.await("1,1]", at: next)
    }

    @Test func `is refused where there is no thread for it`() throws {
        let ruled = try RuledWorker(Self.checked)
        ruled.work.refuse()
        let (client, peer, _) = try ruled.forward(request(ruled))
        peer.send(response("[" + String(repeating: "1,", count: 10_000) + "1]"))
        ruled.still.await("\nid: ", at: client)
        #expect(client.text.contains("503 transformation-overloaded"))
    }

    // MARK: Translated, and the cache

    private static let toPlist = "response: { body: { from: json, to: plist } }"

    private func tag(_ text: String) -> String? {
        text.firstRange(of: "\r\nETag: ").map {
            String(text[$0.upperBound...].prefix { !$0.isNewline })
        }
    }

    @Test func `is passed on, stored and confirmed as what it was translated to`() throws {
        let ruled = try RuledWorker(Self.toPlist, caches: true)
        let (client, peer, asked) = try ruled.forward(
            request(ruled, "Accept: application/x-plist\r\nRange: bytes=0-3\r\n"))
        #expect(asked.contains("\r\nAccept: application/json, */*;q=0.5\r\n"))
        #expect(!asked.contains("Range"))
        peer.send(
            response(
                "{\"a\":true}",
                fields: "Cache-Control: max-age=0\r\nETag: \"v1\"\r\n"
                    + "Content-MD5: x\r\nAccept-Ranges: bytes\r\n"))
        ruled.still.await("</plist>", at: client)
        let plist = content(client.text)
        #expect(plist.contains("<key>a</key>"))
        #expect(client.text.contains("\r\nContent-Type: application/x-plist"))
        #expect(client.text.contains("\r\nContent-Length: \(plist.utf8.count)\r\n"))
        #expect(!client.text.contains("Content-MD5") && !client.text.contains("Accept-Ranges"))
        let tag = try #require(self.tag(client.text))
        #expect(tag.hasPrefix("\"v1-") && tag.count == "\"v1-12345678\"".count)
        #expect(stores(ruled) == 1)

        // Stale: the origin is revalidated with its own tag, and confirms it.
        client.forget()
        peer.forget()
        client.send(request(ruled))
        ruled.still.await("\r\n\r\n", at: peer)
        #expect(peer.text.contains("\r\nIf-None-Match: \"v1\"\r\n"))
        peer.send("HTTP/1.1 304 Not Modified\r\nETag: \"v1\"\r\nCache-Control: max-age=60\r\n\r\n")
        ruled.still.await("</plist>", at: client)
        #expect(content(client.text) == plist)
        #expect(self.tag(client.text) == tag)

        // Fresh: hits in every form, without the origin.
        client.forget()
        peer.forget()
        client.send(request(ruled))
        ruled.still.await("</plist>", at: client)
        #expect(content(client.text) == plist && self.tag(client.text) == tag)
        client.forget()
        client.send(request(ruled, "If-None-Match: \(tag)\r\n"))
        ruled.still.await("\r\n\r\n", at: client)
        #expect(client.text.hasPrefix("HTTP/1.1 304"))
        client.forget()
        client.send(request(ruled, "If-None-Match: \"v1\"\r\n"))
        ruled.still.await("</plist>", at: client)
        #expect(client.text.hasPrefix("HTTP/1.1 200"))
        client.forget()
        client.send(request(ruled, "Range: bytes=0-4\r\nIf-Range: \(tag)\r\n"))
        ruled.still.await("\r\n\r\n<?xml", at: client)
        #expect(client.text.hasPrefix("HTTP/1.1 206"))
        #expect(client.text.contains("\r\nContent-Range: bytes 0-4/\(plist.utf8.count)\r\n"))
        client.forget()
        client.send(request(ruled, method: "HEAD"))
        ruled.still.await("\r\n\r\n", at: client)
        #expect(client.text.contains("\r\nContent-Length: \(plist.utf8.count)\r\n"))
        #expect(self.tag(client.text) == tag)
        #expect(peer.read() == "")
    }

    @Test func `to HEAD has the head that GET would have, without the length`() throws {
        let ruled = try RuledWorker(Self.toPlist)
        let (client, peer, _) = try ruled.forward(request(ruled, method: "HEAD"))
        peer.send(
            "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 10\r\n"
                + "ETag: W/\"v1\"\r\n\r\n")
        ruled.still.await("\r\n\r\n", at: client)
        #expect(client.text.contains("\r\nContent-Type: application/x-plist"))
        #expect(!client.text.contains("Content-Length"))
        #expect(tag(client.text)?.hasPrefix("W/\"v1-") ?? false)
    }

    @Test func `answers a client's own condition on what was translated`() throws {
        let ruled = try RuledWorker(Self.toPlist)
        let (client, peer, _) = try ruled.forward(request(ruled))
        peer.send(response("[]", fields: "ETag: \"v1\"\r\n"))
        ruled.still.await("</plist>", at: client)
        let tag = try #require(self.tag(client.text))
        client.forget()
        peer.forget()
        client.send(request(ruled, "If-None-Match: \(tag)\r\n"))
        ruled.still.await("\r\n\r\n", at: peer)
        #expect(peer.text.contains("\r\nIf-None-Match: \"v1\"\r\n"))
        peer.send("HTTP/1.1 304 Not Modified\r\nETag: \"v1\"\r\n\r\n")
        ruled.still.await("\r\n\r\n", at: client)
        #expect(client.text.hasPrefix("HTTP/1.1 304"))
        #expect(self.tag(client.text) == tag)
    }

    @Test(arguments: [
        ("application/json", "Cache-Control: no-transform\r\n"), ("text/plain", ""),
    ])
    func `passes as it is where the rules are not about it`(
        type: String, fields: String
    ) throws {
        let ruled = try RuledWorker(Self.toPlist)
        let (client, peer, _) = try ruled.forward(request(ruled))
        peer.send(response("{\"a\":1}", type: type, fields: fields + "ETag: \"v1\"\r\n"))
        ruled.still.await("}", at: client)
        #expect(content(client.text) == "{\"a\":1}")
        #expect(tag(client.text) == "\"v1\"")
    }

    @Test func `interim ones are passed on at once`() throws {
        let ruled = try RuledWorker(Self.toPlist)
        let (client, peer, _) = try ruled.forward(request(ruled))
        peer.send("HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n")
        ruled.still.await("Link: </a>", at: client)
        peer.send(response("[]"))
        ruled.still.await("</plist>", at: client)
    }

    @Test func `in which another protocol begins is not looked at, where that is allowed`() throws {
        let ruled = try RuledWorker(
            "response: { statusCodes: [200], validate: json }, switchProtocols: allow")
        let names = String(repeating: "other, ", count: 15)
        let (client, peer, asked) = try ruled.forward(
            request(ruled, "Connection: Upgrade\r\nUpgrade: \(names)chat\r\n"))
        #expect(asked.contains("\r\nUpgrade: \(names)chat\r\n"))
        peer.send(
            "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: chat\r\n\r\n")
        ruled.still.await("101 Switching", at: client)
        peer.send("hello")
        ruled.still.await("hello", at: client)
    }
}
