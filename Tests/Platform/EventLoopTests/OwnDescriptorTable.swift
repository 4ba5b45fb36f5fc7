import Foundation
import Locking
import Testing
import Threads

@testable import EventLoop

/// Runs both steps, the second with the first one's result, on a thread with a copy of the
/// process's descriptor table: it can exhaust descriptors, and rely on their numbers, without
/// affecting tests that run at the same time.
func inOwnDescriptorTable(
    _ first: @escaping @Sendable () -> String,
    then second: @escaping @Sendable (String) -> String = { $0 }
) throws -> String {
    typealias Unshare = @convention(c) (Int32) -> Int32
    let cloneFiles: Int32 = 0x400
    let symbol = try #require(dlsym(nil, "unshare"))
    let call = unsafeBitCast(symbol, to: Unshare.self)
    let outcome = Outcome()
    let thread = try Threads.Thread(name: "descriptors") {
        outcome.set(call(cloneFiles) == 0 ? second(first()) : "cannot unshare")
    }
    thread.join()
    return outcome.value
}

/// A text passed from one thread to another.
private final class Outcome: Sendable {
    private let text = Locked("did not run")
    func set(_ value: String) { text.withLock { $0 = value } }
    var value: String { text.withLock { $0 } }
}
