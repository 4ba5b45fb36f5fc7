import CLinux
import Foundation
import Logging
import TestSupport
import Testing

@testable import Gateway
@testable import PinfoldEngine

@Suite("Operational log")
struct OperationalLogTests {
    private func line(_ message: String, _ metadata: Logger.Metadata) -> String {
        var format = LogLine()
        var lines: [UInt8] = []
        format.append(
            message, level: .warning, metadata: metadata, wallMilliseconds: 1_795_236_013_123,
            to: &lines)
        return String(decoding: lines, as: UTF8.self)
    }

    @Test func `a line has time, level, message, and the values in the order of their names`() {
        #expect(
            line("server refused", ["reason": "tls-not-tls", "host": "[::1]:443", "a": ""])
                == "2026-11-21T04:40:13.123Z warning server refused a=\"\" host=[::1]:443 "
                + "reason=tls-not-tls\n")
    }

    @Test(
        arguments: [
            ("two words", #""two words""#), ("a\nb", #""a\nb""#), ("a=\"b\"", #""a=\"b\"""#),
            ("\u{1b}[2J", #""\u001b[2J""#), ("é", "\"é\""),
        ])
    func `whatever a value holds, it stays between its quotation marks on its line`(
        value: String, written: String
    ) {
        #expect(line("m", ["k": "\(value)"]).hasSuffix(" m k=\(written)\n"))
    }

    @Test func `a line that is too long is cut and still ends`() {
        let text = line("m", ["k": "\(String(repeating: "x", count: 100_000))"])
        #expect(text.utf8.count <= LogLine.maximumBytes + 1)
        #expect(text.hasSuffix("\n"))
    }

    @Test func `a thousand of the same are a few lines and a number`() throws {
        let folder = TemporaryFolder()
        let path = folder.path + "/log"
        let log = OperationalLog(level: .info, path: path)
        try log.start()
        let logger = log.logger(label: "pinfold")
        for _ in 0..<1000 { logger.info("request not served", metadata: ["reason": "x"]) }
        let written = { (try? String(contentsOfFile: path, encoding: .utf8)) ?? "" }
        // A slow machine needs several windows for it: then there are several numbers.
        func accountedFor() -> Int {
            written().split(separator: "\n").reduce(0) { sum, line in
                let more = line.firstMatch(of: /and ([\d,]+) more/)?.output.1.filter(\.isNumber)
                return sum + (more.flatMap { Int($0) } ?? 1)
            }
        }
        eventually("every message is written or counted") { accountedFor() == 1000 }
        log.close(withinMilliseconds: 1000)
        #expect(written().contains("info request not served … and "))
        #expect(written().split(separator: "\n").count < 500)
        #expect(log.lines.suppressed > 0)
        #expect(log.lines.dropped == 0)
    }

    @Test func `the level holds for all loggers, and debugging is not limited`() throws {
        let folder = TemporaryFolder()
        let path = folder.path + "/log"
        let log = OperationalLog(level: .info, path: path)
        try log.start()
        let logger = log.logger(label: "pinfold")
        logger.debug("not yet")
        log.logLevel = .debug
        for number in 0..<100 { logger.debug("now", metadata: ["number": "\(number)"]) }
        log.close(withinMilliseconds: 5000)
        let lines = try String(contentsOfFile: path, encoding: .utf8).split(separator: "\n")
        #expect(lines.count == 100)
        #expect(lines.allSatisfy { $0.contains(" debug now number=") })
    }

    @Test func `nothing waits for a pipe without a reader, and lines are dropped`() throws {
        let folder = TemporaryFolder()
        let path = folder.path + "/pipe"
        #expect(mkfifo(path, 0o600) == 0)
        let reader = open(path, O_RDONLY | O_NONBLOCK)
        defer { close(reader) }
        let log = OperationalLog(level: .debug, path: path)
        try log.start()
        let logger = log.logger(label: "pinfold")
        let text = String(repeating: "x", count: 1000)
        for _ in 0..<10_000 { logger.debug("full", metadata: ["text": "\(text)"]) }
        #expect(log.lines.dropped > 0)
        log.close(withinMilliseconds: 50)
        eventually("every line is accounted for") {
            log.lines.written + log.lines.dropped >= 10_000
        }
    }

    @Test func `after a stall the log reports how many lines were lost`() throws {
        let folder = TemporaryFolder()
        let path = folder.path + "/log"
        let log = OperationalLog(level: .debug, path: path)
        let logger = log.logger(label: "pinfold")
        let text = String(repeating: "x", count: 1000)
        // Nothing is written before the start: the queue fills up.
        for _ in 0..<2000 { logger.debug("full", metadata: ["text": "\(text)"]) }
        let dropped = log.lines.dropped
        #expect(dropped > 0)
        try log.start()
        eventually("lines are written") { log.lines.written > 0 }
        logger.notice("after")
        log.close(withinMilliseconds: 5000)
        let lines = try String(contentsOfFile: path, encoding: .utf8)
        #expect(lines.contains("log lines were dropped lines=\(dropped)\n"))
        #expect(lines.contains("notice after\n"))
    }
}
