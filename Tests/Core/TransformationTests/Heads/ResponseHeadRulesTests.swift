import HTTPCore
import PinfoldConfiguration
import Testing

@testable import Transformation

@Suite("Rules for the heads that clients are sent")
struct ResponseHeadRulesTests {
    /// The field lines of a head with the rules; `nil` if they do not change.
    private func changed(
        _ lines: [String], status: UInt16 = 200, name: GatewayName? = nil,
        _ change: (inout HeaderRules) -> Void = { _ in }
    ) -> [String]? {
        var rules = HeaderRules()
        change(&rules)
        guard let heads = ResponseHeadRules(rules, name: name) else { return nil }
        let start = "HTTP/1.1 \(status) X\r\n"
        let head = Array((start + lines.map { "\($0)\r\n" }.joined()).utf8)
        guard let new = heads.fields(of: head.span, from: start.utf8.count, status: status) else {
            return nil
        }
        let text = String(decoding: new, as: UTF8.self)
        #expect(text.isEmpty || text.hasSuffix("\r\n"))
        return text.split(separator: "\r\n").map(String.init)
    }

    @Test func `without rules there is nothing`() {
        #expect(ResponseHeadRules(HeaderRules(), name: nil) == nil)
        #expect(changed(["A: 1"]) { $0.remove = ["B"] } == nil)
    }

    @Test func `the steps are those of requests, in their order`() {
        let new = changed(["Server: s", "X-Old: 1", "X-Set: a", "x-set: b", "Kept:  v "]) {
            $0.remove = ["server"]
            $0.rename = [NamedValue("x-old", "X-New")]
            $0.set = [NamedValue("X-Set", "c")]
            $0.add = [NamedValue("Kept", "w"), NamedValue("Kept", "x")]
            $0.defaults = [NamedValue("X-New", "no"), NamedValue("X-Own", "yes")]
        }
        #expect(
            new == [
                "X-New: 1", "X-Set: c", "Kept:  v ", "Kept: w", "Kept: x", "X-Own: yes",
            ])
    }

    @Test(
        arguments: [
            "Content-Length", "Transfer-Encoding", "Connection", "Keep-Alive", "Trailer", "Via",
            "Upgrade", "TE", "Proxy-Authenticate", "Content_Length",
        ])
    func `what frames a message is not touched, wherever the rules come from`(name: String) {
        let rules: (inout HeaderRules) -> Void = {
            $0.remove = [name]
            $0.rename = [NamedValue(name, "X")]
            $0.set = [NamedValue(name, "1")]
            $0.add = [NamedValue(name, "2")]
            $0.defaults = [NamedValue(name, "3")]
        }
        #expect(changed(["\(name): 0", "A: 1"], rules) == nil)
        #expect(changed(["A: 1"]) { $0.rename = [NamedValue("A", name)] } == nil)
    }

    @Test(arguments: ["a\r\nB: 1", "a\nb", "a\rb", "a\0b", "\u{7F}"])
    func `a value that would end its line is not written`(value: String) {
        #expect(changed(["A: 1"]) { $0.set = [NamedValue("A", value)] } == nil)
        #expect(changed([]) { $0.add = [NamedValue("A", value)] } == nil)
    }

    @Test(arguments: ["", "A B", "A:", "A\r\nB", "\u{E9}"])
    func `what is no name is not written`(name: String) {
        #expect(changed(["A: 1"]) { $0.set = [NamedValue(name, "1")] } == nil)
        #expect(changed(["A: 1"]) { $0.rename = [NamedValue("A", name)] } == nil)
    }

    /// RFC 9111 §3.2: the fields of a 304 replace those of the stored response, which has others
    /// too.
    @Test func `to a field that a 304 leaves out nothing is added`() {
        func new(_ lines: [String]) -> [String]? {
            changed(lines, status: 304) {
                $0.remove = ["Gone"]
                $0.set = [NamedValue("Set", "s")]
                $0.add = [NamedValue("Added", "1"), NamedValue("Added", "2")]
                $0.defaults = [NamedValue("Default", "d")]
            }
        }
        #expect(new(["ETag: 1"]) == ["ETag: 1", "Set: s"])
        #expect(
            new(["Added: 0", "Gone: 1"]) == ["Added: 0", "Set: s", "Added: 1", "Added: 2"])
    }

    @Test func `the type that frames several ranges stays`() {
        let type = "Content-Type: multipart/byteranges; boundary=b"
        let set: (inout HeaderRules) -> Void = {
            $0.set = [NamedValue("Content-Type", "text/plain")]
        }
        #expect(changed([type], status: 206, set) == [type])
        #expect(
            changed([type], status: 206) { $0.remove = ["Content-Type"] } == [type])
        #expect(
            changed(["Content-Type: text/html"], status: 206, set) == ["Content-Type: text/plain"])
        #expect(changed([type], status: 200, set) == ["Content-Type: text/plain"])
    }

    @Test func `the name takes the place of the gateway's own in its lines alone`() {
        let name = GatewayName("gw-1")
        #expect(
            changed(
                [
                    "Via: 1.0 other, 1.1 pinfold", "Cache-Status: origin; hit",
                    "Cache-Status: pinfold; hit; ttl=5", "Via: 1.1 pinfold", "Via: 1.0 pinfold",
                    "X: pinfold", "Server: pinfold",
                ], name: name)
                == [
                    "Via: 1.0 other, 1.1 pinfold", "Cache-Status: origin; hit",
                    "Cache-Status: gw-1; hit; ttl=5", "Via: 1.1 gw-1", "Via: 1.0 gw-1",
                    "X: pinfold", "Server: pinfold",
                ])
        #expect(changed(["Via: 1.1 pinfolder", "Cache-Status: pinfold2; hit"], name: name) == nil)
    }
}
