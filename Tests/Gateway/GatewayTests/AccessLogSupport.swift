import Foundation
import HTTPCore
import PinfoldMetrics
import TestSupport
import Testing

@testable import Gateway
@testable import PinfoldEngine

/// A request's head and the texts that the access log takes from it.
struct LoggedRequest {
    var method = "GET"
    var target = "http://example.com/"
    var userAgent = ""
    var referer = ""

    /// The head's bytes and the positions of the texts in them.
    var head: ([UInt8], FlowTexts) {
        var bytes: [UInt8] = []
        func add(_ text: String) -> ByteRange {
            defer { bytes += Array(text.utf8) + [UInt8(ascii: " ")] }
            return ByteRange(from: bytes.count, to: bytes.count + text.utf8.count)
        }
        let texts = FlowTexts(
            method: add(method), target: add(target), userAgent: add(userAgent),
            referer: add(referer))
        return (bytes, texts)
    }

    static func record(_ exchange: UInt64 = 1) -> FlowRecord {
        let name = LabelIndex(slot: 1, use: 0)
        var record = FlowRecord(
            client: Endpoint(address: .v4(0x7f00_0001), port: 5000),
            counted: ExchangeRecord(
                route: RouteIndex(listener: name, host: name), method: .get, status: 200,
                cache: .none, durationMicroseconds: 0, requestBytes: 0, responseBytes: 0))
        record.timeMilliseconds = 1_795_236_013_123
        record.exchange = exchange
        record.version = .http11
        return record
    }

    static let labels = AccessLogLabels(
        listeners: LabelTable(["proxy", "pay\"ments"]), hosts: LabelTable(["api"]),
        reasons: ["pin_mismatch", "upstream_timeout"])
}

extension AccessLogProducer {
    func log(_ record: FlowRecord, _ request: LoggedRequest = LoggedRequest()) {
        let (bytes, texts) = request.head
        log(record, head: bytes.span, texts: texts)
    }
}

extension TemporaryFolder {
    func lines(_ name: String) -> [String] {
        // Without `FileManager`, which leaks a page for an empty file.
        guard let data = try? FileHandle(forReadingAtPath: file(name))?.readToEnd() else {
            return []
        }
        return String(decoding: data, as: UTF8.self).split(separator: "\n").map(String.init)
    }
}

/// Waits until a condition holds that another thread brings about; records an issue if it does not
/// within a minute. It occupies its thread: a task would be resumed only after all other tests.
func eventually(
    _ what: Comment, sourceLocation: SourceLocation = #_sourceLocation, _ body: () -> Bool
) {
    let end = ContinuousClock.now + .seconds(60)
    while !body() {
        guard ContinuousClock.now < end else {
            Issue.record(what, sourceLocation: sourceLocation)
            return
        }
        usleep(1000)
    }
}
