import CachePolicy
import Foundation
import Locking
import TestSupport

@testable import CacheStore

extension TemporaryFolder {
    var database: String { file("cache.sqlite") }
}

/// Collects a store's events for the operator.
final class EventLog: Sendable {
    private let events = Locked<[StoreEvent]>([])
    var all: [StoreEvent] { events.withLock { $0 } }
    var record: @Sendable (StoreEvent) -> Void {
        { [self] event in events.withLock { $0.append(event) } }
    }
    func contains(_ test: (StoreEvent) -> Bool) -> Bool { all.contains(where: test) }
}

extension CacheStore {
    /// Whether the disk may hold the key, in any variant.
    func diskMayHold(_ key: CacheKeyView) -> Bool { disk.index.mayHold(key.bytes) }
}

/// Reads a database file independently of the store.
func query(_ path: String, _ sql: String) -> Int64? {
    guard let database = try? Database(path: path, create: false, busyMilliseconds: 5000) else {
        return nil
    }
    defer { database.close() }
    return (try? database.integer(sql)) ?? nil
}

func execute(_ path: String, _ sql: String) throws {
    let database = try Database(path: path, create: true, busyMilliseconds: 5000)
    defer { database.close() }
    try database.execute(sql)
}

/// This test process, to run one of its tests in a process of its own.
enum OwnTests {
    static var program: String {
        URL(fileURLWithPath: "/proc/self/exe").resolvingSymlinksInPath().path
    }

    /// - Parameter filter: a regular expression of the test.
    static func arguments(filter: String) -> [String] {
        var arguments: [String] = []
        var rest = CommandLine.arguments.dropFirst()
        while let argument = rest.popFirst() {
            // The first argument of the test runner may be the bundle to load.
            if argument.hasSuffix(".xctest") || argument == "--test-bundle-path" {
                arguments.append(argument)
                if argument == "--test-bundle-path", let path = rest.popFirst() {
                    arguments.append(path)
                }
            }
        }
        return arguments + ["--testing-library", "swift-testing", "--filter", filter]
    }
}
