import CLinux
import CacheTestSupport
import Dispatch
import Foundation
import TestSupport
import Testing

@testable import CacheStore

@Suite("The log of changes that processes share")
struct ChangeLogTests {
    private let folder = TemporaryFolder()
    private var path: String { folder.path + "/changes" }

    private func create(_ process: Int64 = 1) throws -> ChangeLog {
        try #require(ChangeLog.create(path, process: process))
    }

    private func open(_ process: Int64 = 2) throws -> ChangeLog {
        try #require(ChangeLog.open(path, process: process))
    }

    private func key(_ text: String) -> [UInt8] { [UInt8](text.utf8) }

    private func append(_ texts: String..., to log: ChangeLog) {
        for text in texts { log.append(key(text)) }
    }

    private func keys(_ texts: String...) -> ChangeLog.News { .keys(texts.map(key)) }

    @Test func `each finds what the other has appended, once and in order`() throws {
        let first = try create()
        let second = try open()
        #expect(!first.hasNews && !second.hasNews)
        #expect(second.news() == keys())
        append("a", "", "c", to: first)
        #expect(!first.hasNews)
        #expect(second.hasNews)
        #expect(second.news() == keys("a", "", "c"))
        #expect(!second.hasNews)
        append("d", to: second)
        append("e", to: first)
        append("f", to: second)
        #expect(first.news() == keys("d", "f"))
        #expect(second.news() == keys("e"))
        #expect(first.news() == keys())
    }

    @Test func `whoever comes later finds what is not in the database`() throws {
        let first = try create()
        append("a", "b", to: first)
        let position = first.position
        append("c", to: first)
        #expect(try open().news() == keys("a", "b", "c"))
        first.settle(position)
        let second = try open()
        #expect(second.hasNews)
        #expect(second.news() == keys("c"))
        append("d", to: second)
        #expect(first.news() == keys("d"))
        // Also its own.
        first.rewind()
        #expect(first.news() == keys("c", "d"))
        append("e", to: first)
        append("f", to: second)
        #expect(first.news() == keys("f"))
    }

    @Test func `all keys`() throws {
        let first = try create()
        let second = try open()
        append("a", to: first)
        first.appendEverything()
        append("b", to: first)
        #expect(!first.hasNews)
        #expect(second.news() == .everything)
        append("c", to: first)
        #expect(second.news() == keys("c"))
        #expect(try open(3).news() == .everything)
    }

    @Test func `more than the log holds stands for all keys`() throws {
        let first = try create()
        let second = try open()
        let large = [UInt8](repeating: 1, count: 1 << 20)
        for _ in 0..<15 { first.append(large) }
        guard case .keys(let found, _) = second.news() else {
            Issue.record("it should still have all")
            return
        }
        #expect(found == [[UInt8]](repeating: large, count: 15))
        for _ in 0..<2 { first.append(large) }
        append("a", to: first)
        #expect(second.news() == .everything)
        append("b", to: first)
        #expect(second.news() == keys("b"))
        #expect(!first.hasNews)
    }

    @Test(arguments: [0, 3, 31, 32, 40, 44])
    func `a file that was cut off stands for all keys, and is a log again`(_ bytes: Int) throws {
        let first = try create()
        let second = try open()
        append("a", "b", to: first)
        #expect(truncate(path, bytes) == 0)
        #expect(second.hasNews)
        #expect(second.news() == .everything)
        #expect(!second.hasNews)
        append("c", to: second)
        #expect(first.hasNews)
        let news = first.news()
        #expect(news == .everything || news == keys("c"))
        append("d", to: second)
        #expect(first.news() == keys("d"))
    }

    @Test func `what is not a log is not opened, and a link is not followed`() throws {
        #expect(ChangeLog.open(path, process: 1) == nil)
        _ = try create()
        #expect(truncate(path, 0) == 0)
        #expect(ChangeLog.open(path, process: 1) == nil)
        unlink(path)
        #expect(symlink("/etc/passwd", path) == 0)
        #expect(ChangeLog.open(path, process: 1) == nil)
        // It is replaced.
        let log = try create()
        append("a", to: log)
        #expect(try open().news() == keys("a"))
    }

    @Test func `several append at the same time, and nothing is lost`() throws {
        let reader = try create()
        let group = DispatchGroup()
        for number in 1...4 {
            nonisolated(unsafe) let own = try open(Int64(number) + 10)
            DispatchQueue.global().async(group: group) {
                for index in 0..<500 {
                    own.append(Array("\(number) \(index)".utf8))
                }
            }
        }
        var found: [String: [Int]] = [:]
        func take() {
            guard case .keys(let keys, _) = reader.news() else {
                Issue.record("records are lost")
                return
            }
            for key in keys {
                let words = String(decoding: key, as: UTF8.self).split(separator: " ")
                found[String(words[0]), default: []].append(Int(words[1]) ?? -1)
            }
        }
        while group.wait(timeout: .now()) != .success { take() }
        take()
        #expect(found.count == 4)
        for indices in found.values { #expect(indices == Array(0..<500)) }
    }
}
