import HTTPCore
import HTTPTypes
import Testing

@testable import PinfoldClient

@Suite("References to resources")
struct URIReferenceTests {
    /// RFC 3986 section 5.4.
    @Test(
        arguments: [
            ("g", "http://a/b/c/g"), ("./g", "http://a/b/c/g"), ("g/", "http://a/b/c/g/"),
            ("/g", "http://a/g"), ("//g", "http://g"), ("?y", "http://a/b/c/d;p?y"),
            ("g?y", "http://a/b/c/g?y"), ("#s", "http://a/b/c/d;p?q#s"), (";x", "http://a/b/c/;x"),
            ("", "http://a/b/c/d;p?q"), (".", "http://a/b/c/"), ("./", "http://a/b/c/"),
            ("..", "http://a/b/"), ("../", "http://a/b/"), ("../g", "http://a/b/g"),
            ("../..", "http://a/"), ("../../g", "http://a/g"), ("../../../g", "http://a/g"),
            ("/./g", "http://a/g"), ("/../g", "http://a/g"), ("g.", "http://a/b/c/g."),
            ("./../g", "http://a/b/g"), ("g/./h", "http://a/b/c/g/h"),
            ("g?y/../x", "http://a/b/c/g?y/../x"), ("https:/x", "https:/x"),
        ])
    func `are resolved according to RFC 3986`(text: String, result: String) throws {
        let base = try #require(URIReference(encoding: "http://a/b/c/d;p?q"))
        let reference = try #require(URIReference(encoding: text))
        #expect(reference.resolved(against: base).description == result)
    }

    @Test func `have characters not allowed in a URI percent-encoded`() throws {
        #expect(try HTTPRequest(.get, "http://a.test/ü b?\"").path == "/%C3%BC%20b?%22")
    }

    @Test(
        arguments: [
            ("https://bücher.example/ü", "https://xn--bcher-kva.example/%C3%BC"),
            ("http://b%c3%bccher.example:81/", "http://xn--bcher-kva.example:81/"),
            ("http://BÜCHER。example/", "http://xn--bcher-kva.example/"),
            ("http://faß.example/", "http://xn--fa-hia.example/"),
            ("http://例え.テスト/", "http://xn--r8jz45g.xn--zckzah/"),
            ("http://xn--bcher-kva.example/", "http://xn--bcher-kva.example/"),
            ("http://A.test/", "http://A.test/"),
            ("http://[fe80::1%25e]/", "http://[fe80::1%25e]/"),
        ])
    func `have names of hosts in A-labels`(text: String, url: String) throws {
        let request = try HTTPRequest(.get, text)
        #expect(request.url == url)
        #expect(request.hasHTTPURL)
        let response = HTTPResponse(status: .found, headerFields: [.location: text])
        let target = try #require(
            try RedirectRule.target(of: response, after: HTTPRequest(.get, "http://a.test/")))
        #expect(target.request.url == url)
        #expect(target.request.hasHTTPURL)
    }

    @Test(arguments: [
        "http://\u{2100}.test/", "http://ü%2F.test/", "http://ü\u{200E}.test/",
        "http://%FF.test/", "http://\(String(repeating: "ü", count: 64)).test/",
    ])
    func `with an invalid host name are rejected`(text: String) throws {
        #expect(throws: ClientError.self) { _ = try HTTPRequest(.get, text) }
        let response = HTTPResponse(status: .found, headerFields: [.location: text])
        let target = try #require(
            try RedirectRule.target(of: response, after: HTTPRequest(.get, "http://a.test/")))
        #expect(!target.request.hasHTTPURL)
    }

    @Test func `with a host outside ASCII are rejected`() {
        let request = HTTPRequest(
            method: .get, scheme: "https", authority: "bücher.example", path: "/")
        #expect(!request.hasHTTPURL)
    }

    @Test(arguments: ["a.test/x", "ftp://a.test/", "http:///x", "http://u:p@a.test/", "http://a\n"])
    func `that are not http URLs are rejected`(text: String) {
        #expect(throws: ClientError.self) { _ = try HTTPRequest(.get, text) }
    }

    @Test(
        arguments: [
            ("http", "a.test", "/b?c#d"), ("https", "a.test:8080", ""), ("HTTP", "A.test", "/b"),
            ("http", "a.test", "/ü b?\"{}"), ("http", "[::1]", "?#"), ("http", "a.test", "/\u{7F}"),
            ("ftp", "a.test", "//"), ("h p", "a.test", "/x"), ("http", "a.test", "/\r\n"),
        ])
    func `are reported for requests as they were parsed`(
        scheme: String, authority: String, path: String
    ) throws {
        let request = HTTPRequest(
            method: .get, scheme: scheme, authority: authority, path: path)
        #expect(request.url == request.reference?.description ?? path)
    }

    @Test(
        arguments: [
            ("http://user:secret@a.test/x", "http://***@a.test/x"),
            ("http://a:secret@b:secret@a.test?x@y", "http://***@a.test?x@y"),
            ("user:secret@a.test", "***@a.test"), ("ftp://a.test/@x", "ftp://a.test/@x"),
            ("//secret@", "//***@"),
        ])
    func `appear in errors without credentials`(text: String, expected: String) throws {
        let error = #expect(throws: ClientError.self) { _ = try HTTPRequest(.get, text) }
        #expect(error?.url == expected)
        let request = try HTTPRequest(.get, "http://a.test/")
        let response = HTTPResponse(status: .found, headerFields: [.location: text])
        guard text.contains("secret") else { return }
        let target = try #require(try RedirectRule.target(of: response, after: request))
        #expect(!target.request.hasHTTPURL)
    }

    @Test(
        arguments: [
            ("http://A.test", "a.test", 80), ("https://a.test", "a.test", 443),
            ("http://a.test:8080/x", "a.test", 8080), ("https://[::1]", "[::1]", 443),
            ("http://[::1]:90", "[::1]", 90), ("http://a.test:", "a.test", 80),
            ("http://a.test:00065535", "a.test", 65_535), ("http://[::1]:", "[::1]", 80),
        ] as [(String, String, UInt16)])
    func `name an origin`(text: String, host: String, port: UInt16) throws {
        let origin = try #require(try HTTPRequest(.get, text).origin)
        #expect(origin.host == host)
        #expect(origin.port == port)
    }

    @Test(arguments: [
        "a:65536", "a:99999999999999999999", "a:+80", "a:-1", "a:8 0", "a:x", "[::1]:x",
        "a:\u{664}",
    ])
    func `name no origin if the port is not valid`(authority: String) {
        #expect(RequestOrigin(scheme: "http", authority: authority) == nil)
    }
}

/// A queue that can be modified within expectations.
private final class Queue {
    private var queue: RequestQueue

    init(perOrigin: Int, total: Int, order: QueueOrder) {
        queue = RequestQueue(perOrigin: perOrigin, total: total, order: order)
    }

    func add(_ number: UInt64, to origin: RequestOrigin, priority: RequestPriority) -> Bool {
        queue.add(number, to: origin, priority: priority)
    }

    func remove(_ number: UInt64, of origin: RequestOrigin) -> [UInt64] {
        queue.remove(number, of: origin)
    }

    func addRunning(_ number: UInt64, to origin: RequestOrigin) {
        queue.addRunning(number, to: origin)
    }

    var isEmpty: Bool { queue.isEmpty }

    func isActive(_ number: UInt64) -> Bool { queue.isActive(number) }
}

@Suite("The queue of a session's requests")
struct RequestQueueTests {
    private func origin(_ host: String) throws -> RequestOrigin {
        try #require(RequestOrigin(scheme: "http", authority: host))
    }

    @Test func `starts up to the limits per origin and in total`() throws {
        let queue = Queue(perOrigin: 2, total: 3, order: .firstInFirstOut)
        let (a, b) = (try origin("a"), try origin("b"))
        let begun = [(1, a), (2, a), (3, a), (4, b), (5, b)].map {
            queue.add($0.0, to: $0.1, priority: .normal)
        }
        #expect(begun == [true, true, false, true, false])
        #expect(queue.remove(1, of: a) == [3])
        #expect(queue.remove(2, of: a) == [5])
        #expect(queue.remove(3, of: a).isEmpty)
    }

    @Test(
        arguments: [
            (QueueOrder.firstInFirstOut, [2, 3, 4]), (.lastInFirstOut, [4, 3, 2]),
        ] as [(QueueOrder, [UInt64])])
    func `starts them in order`(order: QueueOrder, expected: [UInt64]) throws {
        let queue = Queue(perOrigin: 1, total: 9, order: order)
        let a = try origin("a")
        for number in 1...4 { _ = queue.add(UInt64(number), to: a, priority: .normal) }
        var (taken, last) = ([UInt64](), UInt64(1))
        while let next = queue.remove(last, of: a).first {
            taken.append(next)
            last = next
        }
        #expect(taken == expected)
    }

    @Test func `starts higher priorities first, whatever their origin`() throws {
        let queue = Queue(perOrigin: 9, total: 1, order: .firstInFirstOut)
        let (a, b) = (try origin("a"), try origin("b"))
        #expect(queue.add(1, to: a, priority: .low))
        #expect(!queue.add(2, to: a, priority: .normal))
        #expect(!queue.add(3, to: b, priority: .high))
        #expect(!queue.add(4, to: a, priority: .high))
        #expect(queue.remove(1, of: a) == [3])
        #expect(queue.remove(3, of: b) == [4])
        #expect(queue.remove(4, of: a) == [2])
    }

    @Test func `starts the more urgent ones first`() throws {
        let queue = Queue(perOrigin: 1, total: 9, order: .firstInFirstOut)
        let a = try origin("a")
        #expect(queue.add(100, to: a, priority: .normal))
        for number in 0...7 as ClosedRange<UInt64> {
            #expect(!queue.add(number, to: a, priority: RequestPriority(urgency: 7 - Int(number))))
        }
        var (taken, last) = ([UInt64](), UInt64(100))
        while let next = queue.remove(last, of: a).first {
            taken.append(next)
            last = next
        }
        #expect(taken == [7, 6, 5, 4, 3, 2, 1, 0])
    }

    @Test func `takes one back beyond the limits, and starts none until it is below them`() throws {
        let queue = Queue(perOrigin: 1, total: 9, order: .firstInFirstOut)
        let a = try origin("a")
        #expect(queue.add(1, to: a, priority: .normal))
        #expect(!queue.add(2, to: a, priority: .normal))
        #expect(queue.remove(1, of: a) == [2])
        queue.addRunning(1, to: a)
        #expect(!queue.add(3, to: a, priority: .normal))
        #expect(queue.remove(2, of: a).isEmpty)
        #expect(queue.remove(1, of: a) == [3])
        #expect(queue.remove(3, of: a).isEmpty)
        #expect(queue.isEmpty)
    }

    @Test func `skips those that were given up`() throws {
        let queue = Queue(perOrigin: 1, total: 9, order: .firstInFirstOut)
        let a = try origin("a")
        for number in 1...3 { _ = queue.add(UInt64(number), to: a, priority: .normal) }
        #expect(queue.remove(2, of: a).isEmpty)
        #expect(queue.remove(1, of: a) == [3])
        #expect(queue.remove(3, of: a).isEmpty)
        #expect(queue.add(4, to: a, priority: .normal))
    }

    @Test(arguments: QueueOrder.allCases)
    func `forgets those that were given up`(order: QueueOrder) throws {
        let queue = Queue(perOrigin: 1, total: 9, order: order)
        let a = try origin("a")
        for number in 1...200 {
            _ = queue.add(UInt64(number), to: a, priority: number % 2 == 0 ? .low : .high)
        }
        for number in (2...200).shuffled() {
            #expect(queue.remove(UInt64(number), of: a).isEmpty)
        }
        #expect(!queue.isEmpty)
        #expect(queue.remove(1, of: a).isEmpty)
        #expect(queue.isEmpty)
        #expect(queue.remove(1, of: a).isEmpty)
    }

    @Test(arguments: QueueOrder.allCases)
    func `observes its limits at all times`(order: QueueOrder) throws {
        let queue = Queue(perOrigin: 2, total: 3, order: order)
        let origins = try ["a", "b", "c"].map(origin)
        var (waiting, active): ([UInt64: Int], [UInt64: Int]) = ([:], [:])
        var generator = SystemRandomNumberGenerator()
        func begin(_ numbers: [UInt64]) {
            for number in numbers { active[number] = waiting.removeValue(forKey: number) }
        }
        func end(_ number: UInt64, at place: Int) {
            (waiting[number], active[number]) = (nil, nil)
            begin(queue.remove(number, of: origins[place]))
        }
        for number in 1...3000 as ClosedRange<UInt64> {
            let place = Int.random(in: 0..<3, using: &generator)
            waiting[number] = place
            let priority = RequestPriority(urgency: Int.random(in: 0...7, using: &generator))
            if queue.add(number, to: origins[place], priority: priority) { begin([number]) }
            if Bool.random(using: &generator), let one = waiting.randomElement(using: &generator) {
                end(one.key, at: one.value)
            }
            if Bool.random(using: &generator), let one = active.randomElement(using: &generator) {
                end(one.key, at: one.value)
            }
            for place in 0..<3 {
                let count = active.values.count { $0 == place }
                #expect(count <= 2)
                // No request that may begin is waiting.
                #expect(active.count == 3 || count == 2 || !waiting.values.contains(place))
            }
            #expect(active.count <= 3 && active.keys.allSatisfy { queue.isActive($0) })
        }
        while let one = active.first { end(one.key, at: one.value) }
        #expect(waiting.isEmpty && queue.isEmpty)
    }

    @Test func `queues one that returns according to its age`() throws {
        let queue = Queue(perOrigin: 1, total: 9, order: .firstInFirstOut)
        let a = try origin("a")
        for number in 1...4 { _ = queue.add(UInt64(number), to: a, priority: .normal) }
        #expect(queue.remove(2, of: a).isEmpty)
        #expect(!queue.add(2, to: a, priority: .normal))
        #expect(queue.remove(1, of: a) == [2])
        #expect(queue.isActive(2))
        #expect(!queue.isActive(3))
    }
}

@Suite("A redirect")
struct RedirectRuleTests {
    private func next(
        _ method: HTTPRequest.Method, _ status: Int, to location: String
    ) throws -> RedirectRule.Target? {
        let request = try HTTPRequest(
            method, "https://a.test/x/y?z",
            fields: [
                .authorization: "Basic x", .cookie: "a=b", .contentType: "text/plain",
                .accept: "*/*",
            ])
        return try RedirectRule.target(
            of: HTTPResponse(status: .init(code: status), headerFields: [.location: location]),
            after: request)
    }

    @Test(
        arguments: [
            (.post, 301, .get), (.post, 302, .get), (.post, 303, .get), (.post, 307, .post),
            (.post, 308, .post), (.put, 301, .put), (.put, 303, .get), (.head, 303, .head),
            (.head, 302, .head), (.get, 301, .get),
        ] as [(HTTPRequest.Method, Int, HTTPRequest.Method)])
    func `keeps or changes the method by its status`(
        method: HTTPRequest.Method, status: Int, expected: HTTPRequest.Method
    ) throws {
        let next = try #require(try next(method, status, to: "w"))
        #expect(next.request.method == expected)
        #expect(next.request.url == "https://a.test/x/w")
    }

    @Test func `leaves the description of the content out with the content`() throws {
        let next = try #require(try next(.post, 303, to: "w"))
        #expect(!next.keepsContent)
        #expect(next.request.headerFields[.contentType] == nil)
        #expect(next.request.headerFields[.accept] == "*/*")
    }

    @Test(
        arguments: [
            ("/w", true), ("https://A.test:443/w", true), ("http://a.test/w", false),
            ("https://a.test:444/w", false), ("//b.test/w", false),
        ])
    func `keeps credentials within the origin`(location: String, isKept: Bool) throws {
        let next = try #require(try next(.get, 302, to: location))
        #expect((next.request.headerFields[.authorization] != nil) == isKept)
        #expect((next.request.headerFields[.cookie] != nil) == isKept)
    }

    @Test(
        arguments: [
            ("ftp://b.test/x?y", "ftp://b.test/x?y"),
            ("https://user@a.test/", "https://user@a.test/"),
            ("http:///w", "http:///w"), ("mailto:a@b.test", "a@b.test"), ("1:2", "1:2"),
        ])
    func `to a URL that cannot be requested is recognized`(location: String, url: String) throws {
        let next = try #require(try next(.get, 302, to: location))
        #expect(!next.request.hasHTTPURL)
        #expect(next.request.url == url)
    }

    @Test(arguments: [200, 300, 304, 305, 404])
    func `is not a response with another status`(status: Int) throws {
        #expect(try next(.get, status, to: "w") == nil)
    }
}

@Suite("A task's clock")
struct TaskClockTests {
    @Test func `leaves out the time in which the task is suspended`() {
        var clock = TaskClock()
        #expect(clock.elapsed(at: 5) == 0)
        clock.begin(at: 10)
        #expect(clock.elapsed(at: 15) == 5)
        clock.suspend(at: 20)
        clock.suspend(at: 25)
        #expect(clock.elapsed(at: 90) == 10)
        clock.resume(at: 100)
        clock.resume(at: 105)
        #expect(clock.elapsed(at: 101) == 11)
        clock.begin(at: 200)
        #expect(clock.elapsed(at: 201) == 111)
    }

    @Test func `does not run if the task starts suspended`() {
        var clock = TaskClock()
        clock.suspend(at: 5)
        clock.begin(at: 10)
        #expect(clock.elapsed(at: 50) == 0)
        clock.resume(at: 60)
        #expect(clock.elapsed(at: 61) == 1)
    }
}

@Suite("What a serializer's properties are to a session")
struct RequestPropertiesTests {
    @Test func `are all applied, and only those that were set`() {
        let none = RequestOptions(RequestProperties())
        #expect(none.timeout == nil && none.cachePolicy == .useProtocol)
        #expect(none.handlesCookies && none.priority == .normal)
        var properties = RequestProperties()
        properties.timeout = .seconds(5)
        properties.cachePolicy = .returnCacheDontLoad
        properties.handlesCookies = false
        let services = RequestProperties.ServiceType.allCases
        let priorities = services.map { service in
            properties.serviceType = service
            return RequestOptions(properties).priority
        }
        #expect(services == [.standard, .background, .responsive])
        #expect(priorities == [.normal, .low, .high])
        let options = RequestOptions(properties)
        #expect(options.timeout == .seconds(5) && options.cachePolicy == .returnCacheDontLoad)
        #expect(!options.handlesCookies)
        // There is no property that has no effect.
        let names = Mirror(reflecting: properties).children.compactMap(\.label)
        #expect(names == ["timeout", "cachePolicy", "handlesCookies", "serviceType"])
    }
}

@Suite("A cache policy in a request's fields")
struct CachePolicyFieldsTests {
    @Test(
        arguments: [
            (.useProtocol, [], nil), (.useProtocol, ["max-age=3"], "max-age=3"),
            (.reloadIgnoringCache, [], "no-cache"),
            (
                .reloadIgnoringCache, ["max-age=3, no-store", "x=\"y\""],
                "no-store, x=\"y\", no-cache"
            ),
            (.returnCacheElseLoad, ["No-Cache"], "max-stale"),
            (.returnCacheDontLoad, ["no-transform"], "no-transform, only-if-cached, max-stale"),
        ] as [(RequestProperties.CachePolicy, [String], String?)])
    func `replaces the corresponding directives`(
        policy: RequestProperties.CachePolicy, given: [String], expected: String?
    ) {
        var fields = HTTPFields()
        for value in given { fields.append(HTTPField(name: .cacheControl, value: value)) }
        policy.apply(to: &fields)
        #expect(fields[.cacheControl] == expected)
    }
}
