import PinfoldConfiguration
import Testing

@testable import Gateway

private func hosts(_ request: String) -> String {
    "hosts: [{ match: [a.test], tunnel: refuse, request: \(request) }]"
}

private let place = "gateway.yaml:1: hosts[0].request"

@Suite("Steps for fields and parameters together")
struct FieldStepTests {
    @Test(arguments: [
        ("remove: [X-A, x-a]", "remove[1]: \"x-a\" appears more than once in remove"),
        ("remove: [X-A], set: { x-a: b }", "set.x-a: \"x-a\" appears in both remove and set"),
        ("remove: [X-A], add: { X-A: b }", "add.X-A: \"X-A\" appears in both remove and add"),
        (
            "remove: [X-A], defaults: { X-A: b }",
            "defaults.X-A: \"X-A\" appears in both remove and defaults"
        ),
        (
            "remove: [X-A], rename: { X-A: X-B }",
            "rename.X-A: \"X-A\" appears in both remove and rename"
        ),
        ("set: { X-A: b, x-A: c }", "set.x-A: \"x-A\" appears more than once in set"),
        (
            "set: { X-A: b }, defaults: { X-A: c }",
            "defaults.X-A: \"X-A\" appears in both set and defaults"
        ),
        (
            "rename: { X-A: X-B }, set: { X-A: c }",
            "set.X-A: \"X-A\" appears in both rename and set"
        ),
    ])
    func `a field may appear in one step only`(steps: String, problem: String) {
        #expect(
            errors(of: hosts("{ headers: { \(steps) } }")) == [
                "\(place).headers.\(problem); expected each name once, in a single step"
            ])
    }

    @Test(arguments: [
        (
            "rename: { X-A: X-B, X-B: X-C }",
            "rename.X-A: \"X-B\" is itself renamed"
        ),
        (
            "rename: { X-A: X-B }, set: { x-b: c }",
            "rename.X-A: \"X-B\" is also set, which discards the renamed value"
        ),
    ])
    func `a new name may not be renamed or set by another step`(steps: String, problem: String) {
        #expect(
            errors(of: hosts("{ headers: { \(steps) } }")) == [
                "\(place).headers.\(problem); expected another name"
            ])
    }

    @Test(arguments: [
        "remove: [X-B], rename: { X-A: X-B }", "rename: { X-A: X-B }, add: { X-B: c }",
        "rename: { X-A: X-B }, defaults: { X-B: c }", "rename: { X-A: X-C, X-B: X-C }",
    ])
    func `a new name may be used in the other steps`(steps: String) {
        #expect(errors(of: hosts("{ headers: { \(steps) } }")) == [])
    }

    @Test func `parameters differ by case`() {
        #expect(errors(of: hosts("{ query: { remove: [a], set: { A: b } } }")) == [])
        #expect(
            errors(of: hosts("{ query: { remove: [a], set: { a: b } } }")) == [
                "\(place).query.set.a: \"a\" appears in both remove and set; "
                    + "expected each name once, in a single step"
            ])
    }

    static let decided = [
        "Host", "content-length", "Transfer-Encoding", "Trailer", "Connection", "Keep-Alive", "TE",
        "Upgrade", "HTTP2-Settings", "Proxy-Connection", "Proxy-Authorization", "Via",
        "Max-Forwards", "Forwarded", "X-Forwarded-For", "X-Forwarded-Anything", "Expect",
        "Content_Length", "x_forwarded_for",
    ]

    @Test(arguments: decided)
    func `a field that the gateway controls cannot be changed`(name: String) {
        for (steps, key) in [
            ("remove: [\(name)]", "remove[0]"), ("set: { \(name): a }", "set.\(name)"),
            ("add: { \(name): a }", "add.\(name)"),
            ("defaults: { \(name): a }", "defaults.\(name)"),
            ("rename: { \(name): X-A }", "rename.\(name)"),
            ("rename: { X-A: \(name) }", "rename.X-A"),
        ] {
            let found = errors(of: hosts("{ headers: { \(steps) } }"))
            #expect(found.count == 1)
            #expect(
                found.first?.hasPrefix(
                    "\(place).headers.\(key): \"\(name)\" cannot be changed here: ") == true)
        }
    }

    @Test func `the reason is stated`() {
        #expect(
            errors(of: hosts("{ headers: { set: { Host: a } } }")) == [
                "\(place).headers.set.Host: \"Host\" cannot be changed here: the route "
                    + "determines the server; expected another field"
            ])
    }

    @Test(arguments: [
        "Range", "If-Range", "If-Match", "If-None-Match", "If-Modified-Since",
        "If-Unmodified-Since", "Authorization",
    ])
    func `conditions and credentials can be removed but not set`(name: String) {
        for steps in ["remove: [\(name)]", "rename: { \(name): X-A }"] {
            #expect(errors(of: hosts("{ headers: { \(steps) } }")) == [])
        }
        for steps in ["set", "add", "defaults"] {
            let found = errors(of: hosts("{ headers: { \(steps): { \(name): secret } } }"))
            #expect(found.count == 1)
            #expect(!found.joined().contains("secret"))
        }
    }

    @Test(arguments: ["Content-Type", "content-encoding"])
    func `a field that a translation determines cannot be changed`(name: String) {
        let headers = "headers: { remove: [\(name)] }"
        #expect(errors(of: hosts("{ \(headers) }")) == [])
        for (rules, key) in [
            ("body: { from: form, to: json }", "request.body"),
            ("parameters: byMethod", "request.parameters"),
        ] {
            #expect(
                errors(of: hosts("{ \(headers), \(rules) }")) == [
                    "\(place).headers.remove[0]: \"\(name)\" cannot be changed here: \(key) "
                        + "determines it; expected another field"
                ])
        }
    }
}
