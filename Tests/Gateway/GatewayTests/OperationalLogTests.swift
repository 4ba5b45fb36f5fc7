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

    private func object(
        _ message: String, more: UInt64 = 0, _ metadata: Logger.Metadata
    ) throws -> [String: Any] {
        var format = LogLine(format: .json)
        var lines: [UInt8] = []
        format.append(
            message, more: more, level: .warning, metadata: metadata,
            wallMilliseconds: 1_795_236_013_123, to: &lines)
        #expect(lines.count <= LogLine.maximumBytes + 1)
        #expect(lines.count { $0 == UInt8(ascii: "\n") } == 1)
        return try #require(
            JSONSerialization.jsonObject(with: Data(lines)) as? [String: Any])
    }

    @Test func `as JSON a line is one object with its values in the order of their names`() {
        var format = LogLine(format: .json, hasPriorities: true)
        var lines: [UInt8] = []
        format.append(
            "request not served", more: 12, level: .info,
            metadata: ["status": "508", "id": "0000000000000001", "reason": "a \"b\"\n"],
            wallMilliseconds: 1_795_236_013_123, to: &lines)
        #expect(
            String(decoding: lines, as: UTF8.self) == """
                <6>{"time":"2026-11-21T04:40:13.123Z","level":"info",\
                "message":"request not served","more":12,"id":"0000000000000001",\
                "reason":"a \\"b\\"\\n","status":508}

                """)
    }

    @Test(arguments: ["x", "\"", "\u{1b}", "é", "\u{2028}", "\u{85}", "😀"])
    func `as JSON a line that is too long is cut and still an object`(unit: String) throws {
        let long = String(repeating: unit, count: 20_000)
        let cut = try object("m", ["k": "\(long)", "later": "x"])
        #expect(cut["cut"] as? Bool == true)
        let value = try #require(cut["k"] as? String)
        #expect(!value.isEmpty && long.hasPrefix(value))
        #expect(try object(long, ["k": "\(long)"])["cut"] as? Bool == true)
        var many: Logger.Metadata = [:]
        for number in 0..<2000 { many["key\(number)"] = "\(unit)" }
        #expect(try object("m", many)["cut"] as? Bool == true)
        #expect(try object("m", ["k": "\(unit)"])["cut"] == nil)
    }

    @Test(arguments: ["", "-1", "1.5", "007", "9999999999999999", "none", "1 "])
    func `as JSON what is no plain number is a string, also where numbers are usual`(
        value: String
    ) throws {
        #expect(try object("m", ["status": "\(value)"])["status"] as? String == value)
    }

    @Test func `metadata take no member's place`() throws {
        let line = try object("m", ["message": "x", "time": "y", "cut": "z", "level": "l"])
        #expect(line["message"] as? String == "m" && line["level"] as? String == "warning")
        #expect(line["cut"] == nil)
    }

    @Test func `the format changes from one line to the next`() throws {
        let folder = TemporaryFolder()
        let path = folder.path + "/log"
        let log = OperationalLog(level: .info, path: path)
        try log.start()
        let logger = log.logger(label: "pinfold")
        logger.info("as text")
        log.format = .json
        logger.info("as JSON")
        log.close(withinMilliseconds: 5000)
        let lines = try String(contentsOfFile: path, encoding: .utf8).split(separator: "\n")
        #expect(lines.count == 2)
        #expect(lines.first?.hasSuffix("Z info as text") == true)
        #expect(lines.last?.hasSuffix("\"level\":\"info\",\"message\":\"as JSON\"}") == true)
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
