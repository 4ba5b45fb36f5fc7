import CLinux
import Foundation
import Locking
import TestSupport
import Testing

@testable import PinReporting

@Suite("Reports that wait")
struct ReportSpoolTests {
    private final class EventLog {
        var events: [ReportSpool.Event] = []
    }

    private let folder = TemporaryFolder()
    private let log = EventLog()

    private func spool(in name: String = "reports", open: Bool = true) -> ReportSpool {
        let log = log
        var made = ReportSpool(path: folder.file(name)) { log.events.append($0) }
        if open { _ = made.open(now: 0, wall: 0) }
        return made
    }

    private var files: [String] {
        let path = folder.file("reports")
        guard let list = opendir(path) else { return [] }
        defer { closedir(list) }
        var names: [String] = []
        while let entry = readdir(list) {
            let name = withUnsafePointer(to: &entry.pointee.d_name) { pointer in
                pointer.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
            }
            if !name.hasPrefix(".") { names.append(name) }
        }
        return names.sorted()
    }

    private func body(_ text: String) -> [UInt8] { Array(text.utf8) }

    @Test func `are there again for the next process, in their order`() {
        var first = spool()
        for number in 1...3 {
            #expect(
                first.add(
                    pinset: "p\(number)", body: body("{\(number)}"), created: Int64(number), now: 0)
                    == true)
        }
        first.close()
        var second = spool()
        #expect(log.events.last == .opened(reports: 3))
        #expect(second.items.map(\.pinset) == ["p1", "p2", "p3"])
        let bodies = second.items.map { second.body(of: $0) }
        #expect(bodies == ["{1}", "{2}", "{3}"].map { .text(body($0)) })
        #expect(second.bytes == 9)
    }

    @Test func `are taken over as soon as the process before has ended`() {
        var first = spool()
        #expect(first.add(pinset: "old", body: body("{1}"), created: 1, now: 0) == true)
        var second = spool()
        #expect(second.isClosed && second.nextLook == 1000)
        #expect(second.add(pinset: "new", body: body("{2}"), created: 2, now: 0) == true)
        _ = second.open(now: 999, wall: 0)
        first.close()
        _ = second.open(now: 999, wall: 0)
        #expect(second.isClosed)
        let found = second.open(now: 1000, wall: 0)
        #expect(found.files == 1 && second.nextLook == nil && second.inMemory == 0)
        #expect(Set(second.items.map(\.pinset)) == ["old", "new"])
        #expect(log.events == [.opened(reports: 0), .opened(reports: 1)])
    }

    @Test func `have a folder that another process keeps, and that is said after a minute`() {
        let first = spool()
        log.events = []
        var second = spool()
        for now in stride(from: Int64(1000), to: 60_000, by: 1000) {
            _ = second.open(now: now, wall: 0)
        }
        #expect(log.events.isEmpty)
        for now in stride(from: Int64(60_000), to: 200_000, by: 1000) {
            _ = second.open(now: now, wall: 0)
        }
        #expect(log.events == [.unusable(ReportFolderError(folder.file("reports"), EWOULDBLOCK))])
        #expect(!first.isClosed)
    }

    @Test func `are gone when they are removed`() {
        var made = spool()
        #expect(made.add(pinset: "p", body: body("{}"), created: 1, now: 0) == true)
        #expect(files.count == 1)
        made.remove(made.items[0].name)
        #expect(files.isEmpty)
        #expect(made.items.isEmpty)
        #expect(made.bytes == 0)
    }

    @Test func `are dropped where their file was changed at any byte or cut off`() throws {
        var made = spool()
        #expect(made.add(pinset: "p", body: body(#"{"a":1}"#), created: 1, now: 0) == true)
        let name = made.items[0].name
        made.close()
        let path = folder.file("reports/" + name)
        let whole = try #require(try ReportFolder.contents(of: path))
        #expect(ReportFile.read(whole)?.pinset == "p")
        for index in whole.indices {
            var changed = whole
            changed[index] ^= 1
            #expect(ReportFile.read(changed) == nil, "byte \(index)")
            #expect(ReportFile.read(Array(whole[..<index])) == nil, "cut at \(index)")
        }
        #expect(ReportFile.read(whole + [0]) == nil)
        try folder.write("rubbish", to: "reports/" + name)
        var second = ReportSpool(path: folder.file("reports")) { [log] in log.events.append($0) }
        #expect(second.open(now: 0, wall: 0).damaged == 1)
        #expect(log.events.contains(.damaged(file: path)))
        #expect(second.items.isEmpty)
        #expect(files.isEmpty)
    }

    @Test func `leave other files alone`() throws {
        spool().closeNow()
        try folder.write("mine", to: "reports/notes.txt")
        try folder.write("mine", to: "reports/notes.unfinished")
        var made = spool()
        #expect(made.items.isEmpty)
        #expect(files == ["notes.txt", "notes.unfinished"])
        #expect(log.events.contains(.foreign(files: 2)))
        made.close()
    }

    @Test func `are removed and reported if they were not written completely`() throws {
        spool().closeNow()
        let names = [
            "0000000000000001-00000001.report.unfinished",
            "0000000000000001-00000002.report.0123456789abcdef.unfinished",
        ]
        for name in names { try folder.write("half", to: "reports/" + name) }
        var made = spool(open: false)
        #expect(made.open(now: 0, wall: 0).damaged == 2)
        #expect(made.count == 0)
        #expect(files.isEmpty)
        for name in names {
            #expect(log.events.contains(.damaged(file: folder.file("reports/" + name))))
        }
    }

    @Test func `are whole in files before they are on the disk at the end`() throws {
        var first = spool()
        for number in 1...2 {
            let text = body("{\(number)}")
            #expect(first.add(pinset: "p", body: text, created: 1, now: 0, isLast: true) == true)
        }
        #expect(files.allSatisfy { $0.hasSuffix(".unfinished") })
        #expect((first.inMemory, first.unsettled) == (0, 2))
        // The process ends here: the next one renames the files.
        first.close()
        var second = spool()
        #expect(
            second.items.map { second.body(of: $0) } == [.text(body("{1}")), .text(body("{2}"))])
        #expect(files == second.items.map(\.name))
        #expect(files.allSatisfy { $0.hasSuffix(".report") })
        #expect(
            second.add(pinset: "p", body: body("{3}"), created: 2, now: 0, isLast: true) == true)
        second.settle()
        #expect(second.unsettled == 0)
        #expect(files == second.items.map(\.name))
        second.close()
    }

    @Test func `have no more room than their limit`() {
        var made = spool()
        made.routes = ["p": "there"]
        let large = [UInt8](repeating: 0x20, count: 512 << 10)
        for number in 0..<32 { made.add(pinset: "p", body: large, created: 1, now: Int64(number)) }
        #expect(made.takeDropped().isEmpty)
        #expect(made.bytes == ReportSpool.maximumBytes)
        #expect(made.add(pinset: "p", body: body("{}"), created: 2, now: 32) == true)
        #expect(made.takeDropped() == ["there": 1])
        #expect(made.items.map(\.expires).min() == ReportSpool.maximumAge + 1)
        while made.count < ReportSpool.maximumReports {
            made.add(pinset: "p", body: [], created: 2, now: 33, isLast: true)
        }
        #expect(made.takeDropped().isEmpty)
        #expect(made.add(pinset: "p", body: [], created: 2, now: 34) == true)
        #expect(made.takeDropped() == ["there": 1])
        #expect(made.count == ReportSpool.maximumReports)
        #expect(files.count == ReportSpool.maximumReports)
    }

    @Test func `that are longer than the limit of files are ignored`() {
        var made = spool()
        let most = ReportFile.maximumBody
        for bytes in [most, most + 1] {
            let report = [UInt8](repeating: 0x20, count: bytes)
            #expect(made.add(pinset: "p", body: report, created: 1, now: 0) == (bytes == most))
        }
        #expect(made.takeDropped() == [nil: 1])
        #expect(made.body(of: made.items[0]) == .text([UInt8](repeating: 0x20, count: most)))
    }

    @Test func `of one destination push out none of another`() {
        var made = spool()
        made.routes = ["dead": "nobody", "dead too": "nobody", "few": "somebody"]
        for number in 0..<10 {
            made.add(pinset: "few", body: body("{}"), created: 1, now: Int64(number))
        }
        for number in 0..<ReportSpool.maximumReports {
            let pinset = number.isMultiple(of: 2) ? "dead" : "dead too"
            made.add(
                pinset: pinset, body: body("{}"), created: 2, now: Int64(100 + number),
                isLast: true)
        }
        #expect(made.takeDropped() == ["nobody": 10])
        #expect(made.items.count(where: { $0.pinset == "few" }) == 10)
        // Those that had less get space from the one that has the most.
        made.add(pinset: "few", body: body("{}"), created: 3, now: 2000)
        #expect(made.takeDropped() == ["nobody": 1])
        #expect(made.items.count(where: { $0.pinset == "few" }) == 11)
        // The oldest are gone.
        let left = made.items.filter { $0.pinset != "few" }.map(\.expires)
        #expect(left.min() == ReportSpool.maximumAge + 111)
        // Likewise when the next process finds more than it has space for.
        made.settle()
        made.close()
        var next = spool(open: false)
        next.routes = made.routes
        _ = next.open(now: 0, wall: 0)
        #expect(next.count == ReportSpool.maximumReports)
        #expect(next.items.count(where: { $0.pinset == "few" }) == 11)
    }

    @Test func `that are being delivered stay until the delivery has ended`() {
        var made = spool()
        for _ in 0..<ReportSpool.maximumReports {
            made.add(pinset: "p", body: body("{}"), created: 1, now: 0, isLast: true)
        }
        let name = made.items[0].name
        made.set(name, isUnderWay: true)
        made.add(pinset: "p", body: body("{}"), created: 1, now: 0)
        #expect(made.takeDropped() == [nil: 1])
        #expect(made.items[0].name == name)
        #expect(made.prune(now: ReportSpool.maximumAge + 1) { _ in true }.expired == 999)
        #expect(made.prune(now: 0) { _ in false }.unwanted == 0)
        made.set(name, isUnderWay: false)
        #expect(made.prune(now: 0) { _ in false }.unwanted == 1)
    }

    @Test func `are dropped when they are too old or no pinset reports any more`() {
        var made = spool()
        for (pinset, now) in [("p", Int64(1)), ("q", 2), ("p", 3)] {
            // The wall clock may be set at any time.
            #expect(
                made.add(pinset: pinset, body: body("{}"), created: 1000 * now, now: now) == true)
        }
        let gone = made.prune(now: ReportSpool.maximumAge + 2) { $0 == "p" }
        #expect(gone.expired == 1)
        #expect(gone.unwanted == 1)
        #expect(made.items.map(\.expires) == [ReportSpool.maximumAge + 3])
        #expect(files.count == 1)
    }

    /// For a report made at time 7: the clock when it is found, and its age then.
    private static let ages: [(wall: Int64, age: Int64)] = [
        (7, 0), (-9, 0), (1007, 1000), (.max, ReportSpool.maximumAge + 1),
        (ReportSpool.maximumAge + 7, ReportSpool.maximumAge),
        (ReportSpool.maximumAge + 9, ReportSpool.maximumAge + 1),
    ]

    @Test(arguments: ages)
    func `are as old as by the wall clock when they are found`(
        wall: Int64, age: Int64
    ) {
        var first = spool()
        #expect(first.add(pinset: "p", body: body("{}"), created: 7, now: 50) == true)
        first.close()
        var second = spool(open: false)
        _ = second.open(now: 90, wall: wall)
        #expect(second.items.map(\.expires) == [90 + ReportSpool.maximumAge - age])
    }

    @Test func `wait in memory while their folder is missing, and are moved there later`() throws {
        try folder.write("a file where the folder should be", to: "reports")
        var made = spool()
        guard case .unusable = log.events.first else {
            Issue.record("\(log.events)")
            return
        }
        for number in 0..<ReportSpool.maximumInMemory {
            #expect(
                made.add(pinset: "p", body: body("{\(number)}"), created: Int64(number), now: 0)
                    == true)
        }
        made.routes = ["p": "there", "q": "elsewhere"]
        #expect(made.add(pinset: "q", body: body("{}"), created: 100, now: 0) == true)
        #expect(made.takeDropped() == ["there": 1])
        #expect(made.body(of: made.items[0]) == .text(body("{1}")))
        #expect(log.events.count == 1)
        unlink(folder.file("reports"))
        _ = made.open(now: ReportSpool.retryMilliseconds - 1, wall: 0)
        #expect(files.isEmpty)
        _ = made.open(now: ReportSpool.retryMilliseconds, wall: 0)
        #expect(files.count == ReportSpool.maximumInMemory)
        #expect(made.items.allSatisfy { $0.body == nil })
        #expect(made.body(of: made.items[0]) == .text(body("{1}")))
    }

    @Test func `go to their folder when it can be written again`() throws {
        var made = spool()
        // Files are first written under this name.
        let path = folder.file("reports")
        try FileManager.default.removeItem(atPath: path)
        try folder.write("a file where the folder was", to: "reports")
        #expect(made.add(pinset: "p", body: body("{1}"), created: 1, now: 0) == true)
        #expect(made.add(pinset: "p", body: body("{2}"), created: 2, now: 0) == true)
        #expect(made.inMemory == 2)
        #expect(log.events.count(where: { $0 != .opened(reports: 0) }) == 1)
        unlink(path)
        _ = made.open(now: ReportSpool.retryMilliseconds, wall: 0)
        #expect(made.inMemory == 0)
        #expect(files.count == 2)
        let bodies = made.items.map { made.body(of: $0) }
        #expect(bodies == [.text(body("{1}")), .text(body("{2}"))])
        // Each failure is reported, even if the next report found the folder working.
        for times in 2...3 {
            try FileManager.default.removeItem(atPath: path)
            try folder.write("a file where the folder was", to: "reports")
            #expect(made.add(pinset: "p", body: body("{}"), created: 3, now: 0) == true)
            #expect(log.events.count(where: { $0 != .opened(reports: 0) }) == times)
            unlink(path)
            #expect(made.add(pinset: "p", body: body("{}"), created: 3, now: 0) == true)
            #expect(made.inMemory == 0)
        }
    }

    @Test func `are left for later where their file cannot be read`() throws {
        var first = spool()
        for number in 1...2 {
            let text = body("{\(number)}")
            #expect(first.add(pinset: "p", body: text, created: 1, now: 0) == true)
        }
        first.close()
        let all = files
        // Every attempt to open a file fails, as when descriptors have run out.
        let path = folder.file("reports/" + all[0])
        let kept = try #require(try ReportFolder.contents(of: path))
        unlink(path)
        symlink(path, path)
        var made = spool()
        #expect(files == all)
        #expect(made.items.map(\.name) == [all[1]])
        #expect(made.count == 2)
        #expect(log.events.contains(.unreadable(ReportFolderError(path, 0))))
        unlink(path)
        try ReportFolder.write(kept, to: path)
        _ = made.open(now: ReportSpool.retryMilliseconds - 1, wall: 0)
        #expect(made.items.count == 1)
        _ = made.open(now: ReportSpool.retryMilliseconds, wall: 0)
        #expect(made.items.count == 2)
        // Also one that was read before.
        let item = made.items[0]
        let name = folder.file("reports/" + item.name)
        unlink(name)
        #expect(mkdir(name, 0o700) == 0)
        #expect(made.body(of: item) == .unreadable)
        #expect(made.items.count == 1)
        #expect(made.count == 2)
        #expect(made.items[0].name != item.name)
        #expect(made.prune(now: ReportSpool.maximumAge + 9) { _ in true }.expired == 2)
        #expect(made.count == 0)
    }

    @Test func `are looked for without making a folder for them`() {
        var made = spool(open: false)
        #expect(made.open(now: 0, wall: 0, makes: false) == ReportSpool.Found())
        #expect(made.isClosed == true)
        #expect(log.events.isEmpty)
        #expect(folder.names.isEmpty)
        // The folder is created at once when there is a report.
        _ = made.open(now: 1, wall: 0)
        #expect(made.isClosed == false)
    }

    @Test func `are one process's`() {
        var first = spool()
        let second = spool()
        #expect(second.isClosed && second.items.isEmpty)
        first.close()
    }
}

extension ReportSpool {
    fileprivate consuming func closeNow() {
        var spool = self
        spool.close()
    }
}

@Suite("The answer to a report")
struct PostResultTests {
    @Test(arguments: [
        (200, "delivered"), (204, "delivered"), (299, "delivered"), (301, "retried"),
        (308, "retried"), (400, "rejected"), (404, "rejected"), (408, "retried"),
        (410, "rejected"), (425, "retried"), (429, "retried"), (451, "rejected"),
        (500, "retried"), (503, "retried"), (999, "retried"),
    ])
    func `decides what becomes of it`(status: UInt16, expected: String) {
        let result: String
        switch Poster.result(Poster.Answer(status: status)) {
        case .delivered: result = "delivered"
        case .rejected(let code):
            #expect(code == status)
            result = "rejected"
        case .failed(let text, let answered, _):
            #expect(text.contains("\(status)"))
            #expect(answered)
            result = "retried"
        case .interrupted: result = "interrupted"
        }
        #expect(result == expected)
    }

    @Test(arguments: [
        ("120", 120_000), ("0", 0), ("999999999999999999999", 3_600_000),
        ("Sun, 22 Nov 2026 12:00:30 GMT", 30_000), ("Sun, 22 Nov 2026 11:00:00 GMT", 0),
        ("Mon, 23 Nov 2026 12:00:00 GMT", 3_600_000),
    ])
    func `determines how long to wait`(value: String, milliseconds: Int64) {
        let noon: Int64 = 1_795_348_800
        #expect(Poster.retryAfter(Array(value.utf8), now: noon) == milliseconds)
    }

    @Test(arguments: ["", "soon", "-1", "1.5", "12 seconds"])
    func `ignores anything that is not a time`(value: String) {
        #expect(Poster.retryAfter(Array(value.utf8), now: 0) == nil)
    }
}
