import Testing

@testable import HTTPCore

@Suite("W3C Trace Context")
struct TraceParentTests {
    private static let trace = "4bf92f3577b34da6a3ce929d0e0e4736"
    private static let span = "00f067aa0ba902b7"
    private static let valid = "00-\(trace)-\(span)-01"

    private func parsed(_ text: String) -> TraceParent? {
        let bytes = Array(text.utf8)
        return TraceParent(bytes.span)
    }

    @Test func `a value has a trace, a span and a flag`() {
        let expected = TraceParent(
            trace: TraceID(high: 0x4bf9_2f35_77b3_4da6, low: 0xa3ce_929d_0e0e_4736),
            span: 0x00f0_67aa_0ba9_02b7, isSampled: true)
        #expect(parsed(Self.valid) == expected)
        #expect(expected.trace.text == Self.trace)
        #expect(parsed("00-\(Self.trace)-\(Self.span)-00")?.isSampled == false)
    }

    @Test(arguments: [
        "", "00", "00-\(trace)-\(span)", "00-\(trace)-\(span)-", "00-\(trace)-\(span)-1",
        // In version 00 nothing follows.
        "00-\(trace)-\(span)-01-", "00-\(trace)-\(span)-01-more", "00-\(trace)-\(span)-012",
        "ff-\(trace)-\(span)-01", "0-\(trace)-\(span)-01", "cc-\(trace)-\(span)-01.more",
        "00-\(trace.uppercased())-\(span)-01", "00-\(trace)-\(span.uppercased())-01",
        "0G-\(trace)-\(span)-01", "00-\(trace)-\(span)-0x", "00_\(trace)-\(span)-01",
        "00-\(trace)_\(span)-01", "00-\(trace)-\(span)_01",
        "00-00000000000000000000000000000000-\(span)-01", "00-\(trace)-0000000000000000-01",
        "00-.bf92f3577b34da6a3ce929d0e0e4736-\(span)-01", "00-\(trace)-.0f067aa0ba902b7-01",
        " 00-\(trace)-\(span)-01", "00-\(trace)\(span)--01",
    ])
    func `what is no value is invalid`(_ text: String) { #expect(parsed(text) == nil) }

    @Test(arguments: [
        ("cc-\(trace)-\(span)-01", true), ("cc-\(trace)-\(span)-01-what-the-future-brings", true),
        ("01-\(trace)-\(span)-fe-", false), ("00-\(trace)-\(span)-ff", true),
    ])
    func `of a later version, and of flags, what is known is read`(
        _ text: String, isSampled: Bool
    ) {
        #expect(parsed(text)?.isSampled == isSampled)
        #expect(parsed(text)?.trace.text == Self.trace)
    }

    // MARK: In a request

    private struct Request: ~Copyable {
        var head = RequestHead()
        let bytes: [UInt8]

        init(_ fields: [String]) throws {
            let lines = ["GET /x HTTP/1.1", "Host: a"] + fields
            let bytes = Array((lines.joined(separator: "\r\n") + "\r\n\r\n").utf8)
            self.bytes = bytes
            var parser = RequestHeadParser()
            _ = try parser.parse(bytes.span, into: &head)
        }

        /// The lines that are forwarded, besides Host.
        mutating func forwarded(keepingState: Bool) -> [String] {
            let bytes = bytes
            head.endTrace(in: bytes.span, keepingState: keepingState)
            var memory = [UInt8](repeating: 0, count: 1 << 16)
            let count = memory.withUnsafeMutableBytes { buffer in
                var writer = HeadWriter(buffer)
                writer.appendForwardedFields(head.fields, of: bytes.span, omitting: [])
                return writer.count
            }
            return String(decoding: memory[..<count], as: UTF8.self)
                .split(separator: "\r\n").dropFirst().map(String.init)
        }
    }

    private func found(_ fields: String...) throws -> String? {
        let request = try Request(fields)
        let bytes = request.bytes
        return request.head.traceParent(in: bytes.span)?.trace.text
    }

    @Test func `a request has one value, whatever the case of the name`() throws {
        #expect(try found("traceparent: \(Self.valid)") == Self.trace)
        #expect(try found("TraceParent:  \(Self.valid) ", "A: b") == Self.trace)
        #expect(try found("trace-parent: \(Self.valid)") == nil)
        #expect(try found("traceparen: \(Self.valid)", "traceparents: \(Self.valid)") == nil)
        #expect(try found("traceparent: \(Self.valid)", "traceparent: \(Self.valid)") == nil)
        #expect(try found("traceparent: \(Self.valid),\(Self.valid)") == nil)
        #expect(try found("traceparent: 00", "tracestate: a=b") == nil)
    }

    private func left(_ fields: String..., keepingState: Bool = true) throws -> [String] {
        var request = try Request(fields)
        return request.forwarded(keepingState: keepingState)
    }

    @Test func `the fields end here, except a valid state that is kept`() throws {
        let parent = "traceparent: \(Self.valid)"
        #expect(try left("A: b", parent, "tracestate: a=1,b=2") == ["A: b", "tracestate: a=1,b=2"])
        #expect(
            try left(parent, "Tracestate: a=1", "C: d", "tracestate: b=2")
                == ["Tracestate: a=1", "C: d", "tracestate: b=2"])
        #expect(try left(parent, "tracestate: a=1", "C: d", keepingState: false) == ["C: d"])
        #expect(try left("tracestate: =", "C: d") == ["C: d"])
        #expect(try left(parent, parent) == [])
        // One invalid line spoils the list.
        #expect(try left("tracestate: a=1", "tracestate: B=2") == [])
    }

    private func isValidState(_ lines: [String]) -> Bool {
        var members = TraceStateMembers()
        for line in lines {
            let bytes = Array(line.utf8)
            guard members.add(bytes.span) else { return false }
        }
        return true
    }

    private static let many = (0..<32).map { "k\($0)=v" }.joined(separator: ",")

    @Test(arguments: [
        ["a=1"], ["a=1,b=2"], ["a=1, b=2\t,\tc=3"], [""], [",", "a=1,,b=2"], ["0tenant@system=v"],
        ["a_-*/0=v v"], ["a= !~"], [many], ["a=1", "a=2"],
        [String(repeating: "k", count: 256) + "=" + String(repeating: "v", count: 256)],
        [String(repeating: "t", count: 241) + "@" + String(repeating: "s", count: 14) + "=v"],
    ])
    func `a state is a list of keys and values`(_ lines: [String]) {
        #expect(isValidState(lines))
    }

    @Test(arguments: [
        ["a"], ["=1"], ["a="], ["A=1"], ["0=1"], ["a b=1"], ["a=1=2"], ["a=\u{7F}"], ["a=é"],
        ["a@=1"], ["@b=1"], ["a@0=1"], ["a@b@c=1"], ["a=1;b=2"], [many + ",one=more"],
        [many, "one=more"], [String(repeating: "k", count: 257) + "=v"],
        ["k=" + String(repeating: "v", count: 257)],
        [String(repeating: "t", count: 242) + "@s=v"],
        ["t@" + String(repeating: "s", count: 15) + "=v"],
    ])
    func `anything else is no state`(_ lines: [String]) { #expect(!isValidState(lines)) }

    @Test func `a value is written in version 00`() {
        var memory = [UInt8](repeating: 0, count: HeadWriter.traceParentBytes)
        let parent = TraceParent(
            trace: TraceID(high: 0xA, low: .max), span: 0x1234, isSampled: false)
        let text = memory.withUnsafeMutableBytes { buffer in
            var writer = HeadWriter(buffer)
            writer.append(parent)
            return writer.overflowed ? "" : String(decoding: buffer[..<writer.count], as: UTF8.self)
        }
        #expect(text == "traceparent: 00-000000000000000affffffffffffffff-0000000000001234-00\r\n")
    }
}
