import EngineTestSupport
import Testing

@testable import Gateway
@testable import PinfoldEngine

@Suite("A request on a route with rules")
struct RequestRulesTests {
    private static let form = "Content-Type: application/x-www-form-urlencoded\r\n"

    private func post(
        _ ruled: RuledWorker, _ content: String, type: String = form, method: String = "POST",
        path: String = "/"
    ) -> String {
        "\(method) http://\(ruled.server.host):\(ruled.server.port)\(path) HTTP/1.1\r\n"
            + "Host: a.test\r\n\(type)Content-Length: \(content.utf8.count)\r\n\r\n\(content)"
    }

    private func content(_ message: String) -> String {
        message.firstRange(of: "\r\n\r\n").map { String(message[$0.upperBound...]) } ?? ""
    }

    // MARK: The head

    @Test func `is sent with the fields and the path of the rules`() throws {
        let ruled = try RuledWorker(
            """
            request: { headers: { defaults: { User-Agent: Legacy/1.0, Accept-Language: de },
            set: { X-Gateway: pinfold }, remove: [X-Debug], rename: { X-Old: X-New } },
            path: { prefixes: { /old: /new } }, query: { set: { v: "2" } } }
            """)
        let request =
            "GET http://\(ruled.server.host):\(ruled.server.port)/old/a?b=1 HTTP/1.1\r\n"
            + "Host: a.test\r\nX-Debug: 1\r\nX-Old: x\r\nAccept-Language: fr\r\n\r\n"
        let (client, peer, received) = try ruled.forward(request)
        #expect(received.hasPrefix("GET /new/a?b=1&v=2 HTTP/1.1\r\n"))
        #expect(received.contains("\r\nUser-Agent: Legacy/1.0\r\n"))
        #expect(received.contains("\r\nX-Gateway: pinfold\r\n"))
        #expect(received.contains("\r\nX-New: x\r\n"))
        #expect(received.contains("\r\nAccept-Language: fr\r\n"))
        #expect(!received.contains("X-Debug") && !received.contains(": de"))
        ruled.answer(
            client, peer, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", until: "\r\n\r\nok")
        // The client's connection continues.
        client.forget()
        peer.forget()
        client.send(request)
        ruled.still.await("/new/a", at: peer)
    }

    @Test func `has its content where the head was replaced`() throws {
        let ruled = try RuledWorker("request: { headers: { set: { X-Gateway: pinfold } } }")
        let (client, peer, _) = try ruled.forward(post(ruled, "a=b"))
        ruled.still.await("a=b", at: peer)
        #expect(content(peer.text) == "a=b")
        ruled.answer(
            client, peer, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", until: "\r\n\r\nok")
    }

    @Test func `is sent again with its content when a reused connection has closed`() throws {
        let ruled = try RuledWorker("request: { headers: { set: { X-Gateway: pinfold } } }")
        let (client, first, _) = try ruled.forward(post(ruled, "one", method: "PUT"))
        ruled.answer(
            client, first, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", until: "\r\n\r\nok")
        client.forget()
        first.forget()
        client.send(post(ruled, "two", method: "PUT"))
        ruled.still.await("two", at: first)
        first.close()
        let second = try ruled.still.peer(of: ruled.server)
        ruled.still.await("two", at: second)
        #expect(second.text.contains("\r\nX-Gateway: pinfold\r\n"))
        #expect(content(second.text) == "two")
        ruled.answer(
            client, second, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", until: "\r\n\r\nok")
    }

    @Test func `does not go out again without the content that was sent as it came`() throws {
        let ruled = try RuledWorker("request: { headers: { set: { X-Gateway: pinfold } } }")
        let (client, first, _) = try ruled.forward(post(ruled, "one", method: "PUT"))
        ruled.answer(
            client, first, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", until: "\r\n\r\nok")
        client.forget()
        first.forget()
        client.send(
            "PUT http://\(ruled.server.host):\(ruled.server.port)/ HTTP/1.1\r\nHost: a.test\r\n"
                + "Transfer-Encoding: chunked\r\n\r\n3\r\ntwo\r\n0\r\n\r\n")
        ruled.still.await("0\r\n\r\n", at: first)
        first.close()
        ruled.still.await("\nid: ", at: client)
        #expect(client.text.hasPrefix("HTTP/1.1 502 "))
        #expect(ruled.server.accept() == nil)
    }

    // MARK: Translated content

    private static let toJSON = "request: { body: { from: form, to: json, maximum: 64KiB } }"

    @Test func `is sent in the format that the server accepts`() throws {
        let ruled = try RuledWorker(Self.toJSON)
        let (client, peer, _) = try ruled.forward(post(ruled, "name=J%C3%B6rg&tags[]=a&tags[]=b"))
        ruled.still.await("]}", at: peer)
        let received = peer.text
        let json = #"{"name":"Jörg","tags":["a","b"]}"#
        #expect(content(received) == json)
        #expect(received.contains("\r\nContent-Type: application/json"))
        #expect(received.contains("\r\nContent-Length: \(json.utf8.count)\r\n"))
        #expect(!received.contains("urlencoded"))
        ruled.answer(
            client, peer, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", until: "\r\n\r\nok")
        client.forget()
        peer.forget()
        client.send(post(ruled, "a=1"))
        ruled.still.await("{\"a\":\"1\"}", at: peer)
    }

    @Test func `waits for content that arrives bit by bit`() throws {
        let ruled = try RuledWorker(Self.toJSON)
        let client = try ruled.still.client()
        for byte in post(ruled, "name=value") {
            client.send(String(byte))
            ruled.still.settle()
        }
        let peer = try ruled.still.peer(of: ruled.server)
        ruled.still.await(#"{"name":"value"}"#, at: peer)
    }

    @Test func `is translated when its content is chunked`() throws {
        let ruled = try RuledWorker(Self.toJSON)
        let client = try ruled.still.client()
        client.send(
            "POST http://\(ruled.server.host):\(ruled.server.port)/ HTTP/1.1\r\nHost: a.test\r\n"
                + Self.form + "Transfer-Encoding: chunked\r\n\r\n3\r\na=b\r\n0\r\nX-T: 1\r\n\r\n")
        let peer = try ruled.still.peer(of: ruled.server)
        ruled.still.await(#"{"a":"b"}"#, at: peer)
        #expect(peer.text.contains("\r\nContent-Length: 9\r\n"))
        #expect(!peer.text.contains("chunked") && !peer.text.contains("X-T"))
    }

    @Test func `is asked for where the client waits for that`() throws {
        let ruled = try RuledWorker(Self.toJSON)
        let client = try ruled.still.client()
        client.send(
            "POST http://\(ruled.server.host):\(ruled.server.port)/ HTTP/1.1\r\nHost: a.test\r\n"
                + Self.form + "Expect: 100-continue\r\nContent-Length: 3\r\n\r\n")
        ruled.still.await("HTTP/1.1 100 Continue\r\n\r\n", at: client)
        client.send("a=b")
        let peer = try ruled.still.peer(of: ruled.server)
        ruled.still.await(#"{"a":"b"}"#, at: peer)
        #expect(!peer.text.contains("Expect"))
    }

    @Test func `is translated on another thread where it is long`() throws {
        let ruled = try RuledWorker(Self.toJSON)
        let value = String(repeating: "x", count: 40_000)
        let client = try ruled.still.client()
        client.send(post(ruled, "a=\(value)"))
        ruled.still.turn(until: "the work waits") { ruled.work.count == 1 }
        #expect(ruled.server.accept() == nil)
        ruled.work.run()
        let peer = try ruled.still.peer(of: ruled.server)
        ruled.still.await("x\"}", at: peer)
        #expect(content(peer.text) == #"{"a":"\#(value)"}"#)
    }

    @Test(arguments: [
        ("a=%GG", "400 request-body-invalid"),
        ("a[b]=1&a=2", "400 request-body-"),
    ])
    func `is refused where its content cannot be translated`(
        content: String, expected: String
    ) throws {
        let ruled = try RuledWorker(Self.toJSON)
        let client = try ruled.still.client()
        client.send(post(ruled, content))
        ruled.still.await("\nid: ", at: client)
        #expect(client.text.contains(expected))
        #expect(ruled.server.accept() == nil)
    }

    @Test func `is refused where its content is too large, and no more of it is read`() throws {
        let ruled = try RuledWorker(Self.toJSON)
        let client = try ruled.still.client()
        client.send(post(ruled, "a=" + String(repeating: "x", count: 70_000)))
        ruled.still.await("\nid: ", at: client)
        #expect(client.text.contains("413 request-body-too-large"))
        #expect(client.text.contains("65536 bytes"))
    }

    @Test func `is refused where too much is being translated`() throws {
        let ruled = try RuledWorker(Self.toJSON)
        ruled.work.refuse()
        let client = try ruled.still.client()
        client.send(post(ruled, "a=" + String(repeating: "x", count: 40_000)))
        ruled.still.await("\nid: ", at: client)
        #expect(client.text.contains("503 transformation-overloaded"))
    }

    @Test(arguments: [
        "Content-Type: text/plain\r\n",
        "Content-Type: application/x-www-form-urlencoded\r\nCache-Control: no-transform\r\n",
    ])
    func `passes as it is where the rules are not about it`(fields: String) throws {
        let ruled = try RuledWorker(Self.toJSON)
        let (_, peer, _) = try ruled.forward(post(ruled, "a=b", type: fields))
        ruled.still.await("a=b", at: peer)
        #expect(content(peer.text) == "a=b")
    }

    // MARK: Parameters by method

    private static let byMethod =
        "request: { parameters: byMethod, body: { from: form, to: json } }"

    @Test func `of GET has the parameters of its content in the query`() throws {
        let ruled = try RuledWorker(Self.byMethod)
        let (_, _, received) = try ruled.forward(
            post(ruled, "b=2&c=%20", method: "GET", path: "/x?a=1"))
        #expect(received.hasPrefix("GET /x?a=1&b=2&c=%20 HTTP/1.1\r\n"))
        #expect(!received.contains("Content-"))
        #expect(content(received) == "")
    }

    @Test func `of POST has the parameters of its query in the content`() throws {
        let ruled = try RuledWorker(Self.byMethod)
        let (_, peer, _) = try ruled.forward(
            "POST http://\(ruled.server.host):\(ruled.server.port)/x?a=1 HTTP/1.1\r\n"
                + "Host: a.test\r\nContent-Length: 0\r\n\r\n")
        ruled.still.await("}", at: peer)
        #expect(peer.text.hasPrefix("POST /x HTTP/1.1\r\n"))
        #expect(content(peer.text) == #"{"a":"1"}"#)
    }
}
