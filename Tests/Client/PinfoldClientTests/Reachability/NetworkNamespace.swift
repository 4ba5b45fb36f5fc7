import CLinux
import Glibc
import Locking
import Threads

/// Runs code on a thread in a separate network namespace, in which there is only a loopback
/// interface, which is down. The threads that it starts are in the namespace, too.
enum NetworkNamespace {
    private static let newNetwork: Int32 = 0x4000_0000

    /// Returns `nil` if this process may not create one.
    static func run<Result: Sendable>(_ body: @escaping @Sendable () -> Result) async -> Result? {
        await withCheckedContinuation { continuation in
            let thread = try? Thread(name: "test-namespace") {
                continuation.resume(returning: unshare(newNetwork) ? body() : nil)
            }
            if thread == nil { continuation.resume(returning: nil) }
        }
    }

    static let isAllowed: Bool = {
        let answer = Monitor<Bool?>(nil)
        let thread = try? Thread(name: "test-namespace") {
            let isAllowed = unshare(newNetwork)
            answer.withLock { $0 = isAllowed }
            answer.signal()
        }
        return thread != nil && answer.wait { $0.map { .done($0) } ?? .signal }
    }()

    private static func unshare(_ flags: Int32) -> Bool {
        typealias Call = @convention(c) (Int32) -> Int32
        guard let symbol = dlsym(nil, "unshare") else { return false }
        return unsafeBitCast(symbol, to: Call.self)(flags) == 0
    }

    /// Sets the loopback interface up or down.
    static func setLoopback(up: Bool) -> Bool {
        let socket = socket(AF_INET, Int32(SOCK_DGRAM.rawValue), 0)
        defer { close(socket) }
        // struct ifreq: the name, then the flags.
        var request = [UInt8](repeating: 0, count: 40)
        request.replaceSubrange(0..<2, with: "lo".utf8)
        request[16] = up ? 0x41 : 0x40
        // SIOCSIFFLAGS
        typealias Call = @convention(c) (Int32, UInt, UnsafeMutableRawPointer?) -> Int32
        guard let symbol = dlsym(nil, "ioctl") else { return false }
        return request.withUnsafeMutableBytes {
            unsafeBitCast(symbol, to: Call.self)(socket, 0x8914, $0.baseAddress) == 0
        }
    }
}
