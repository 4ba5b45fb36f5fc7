import PinReporting
import Testing

@testable import Gateway

@Suite("Messages of OTLP")
struct SpanExportTests {
    @Test func `fields are written as Protocol Buffers have them`() {
        var writer = ProtobufWriter()
        writer.append(1, varint: 150)
        writer.append(2, text: "testing")
        writer.append(3) { $0.append(1, varint: 150) }
        writer.append(16, fixed32: 0x0102_0304)
        writer.append(7, fixed64: 1)
        writer.append(1, bigEndian: 0x0A, .max)
        let expected: [UInt8] =
            [0x08, 0x96, 0x01, 0x12, 0x07] + Array("testing".utf8)
            + [0x1A, 0x03, 0x08, 0x96, 0x01, 0x85, 0x01, 4, 3, 2, 1, 0x39, 1, 0, 0, 0, 0, 0, 0, 0]
            + [0x0A, 16, 0, 0, 0, 0, 0, 0, 0, 0x0A] + [UInt8](repeating: 0xFF, count: 8)
        #expect(writer.bytes == expected)
    }

    @Test func `a long message has a length of several bytes before it`() {
        var writer = ProtobufWriter()
        writer.append(1) { outer in
            outer.append(2) { $0.append(3, text: String(repeating: "x", count: 300)) }
        }
        var reader = ProtobufReader(writer.bytes[...])
        guard case (1, .bytes(let outer))? = reader.next() else {
            Issue.record("no message")
            return
        }
        #expect(reader.next() == nil)
        #expect(outer.count == 306)
    }

    @Test func `what a collector does not take is read from its answer`() {
        var writer = ProtobufWriter()
        writer.append(1) { partial in
            partial.append(1, varint: 300)
            partial.append(2, text: "too old")
        }
        let rejection = SpanRequest.Rejection(writer.bytes)
        #expect(rejection.spans == 300)
        #expect(rejection.message == "too old")
        // Whatever it is cut off at, and whatever it is, nothing is made up.
        for count in 0..<writer.bytes.count {
            #expect(SpanRequest.Rejection(Array(writer.bytes.prefix(count))).spans == 0)
        }
        for answer: [UInt8] in [
            [], [0x0A, 0xFF], Array("<html>".utf8),
            [0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF],
            [UInt8](repeating: 0x80, count: 32), [0x0A, 0x04, 0x08],
        ] {
            #expect(SpanRequest.Rejection(answer).spans == 0)
        }
    }

    @Test func `only what OTLP says is tried again`() {
        for status: UInt16 in [200, 202, 204] {
            #expect(SpanDelivery.kind.result(status) == .delivered)
        }
        for status: UInt16 in [429, 502, 503, 504] {
            #expect(
                SpanDelivery.kind.result(status)
                    == .failed("it answered \(status)", answered: true, retryAfter: nil))
        }
        for status: UInt16 in [301, 400, 401, 404, 408, 413, 425, 500, 501, 505] {
            #expect(SpanDelivery.kind.result(status) == .rejected(status: status))
        }
    }

    @Test func `waits double, are partly random, and are never shorter than was asked`() {
        var backoff = SpanBackoff()
        #expect(backoff.retryAt == nil)
        var waits: [Int64] = []
        for _ in 0..<7 {
            backoff.failed(now: 100, asked: nil, random: 0)
            waits.append((backoff.retryAt ?? 0) - 100)
        }
        #expect(waits == [500, 1000, 2000, 4000, 8000, 15_000, 15_000])
        backoff.failed(now: 0, asked: nil, random: 1)
        #expect(backoff.retryAt == 30_000)
        backoff.failed(now: 0, asked: 60_000, random: 1)
        #expect(backoff.retryAt == 60_000)
        backoff.failed(now: 0, asked: .max, random: 1)
        #expect(backoff.retryAt == 300_000)
        backoff.succeeded()
        #expect(backoff.retryAt == nil)
    }
}
