import Foundation
import Testing

@testable import PinfoldClient

/// Runs code on a thread in a separate network namespace, in which there is only a loopback
/// interface, which is down.
private enum Namespace {
    private static let newNetwork: Int32 = 0x4000_0000

    /// Returns `nil` if this process may not create one.
    static func run<Result: Sendable>(
        _ body: @escaping @Sendable () -> Result
    ) -> Result? {
        let done = DispatchSemaphore(value: 0)
        let box = Box<Result>()
        // The namespace ends with the thread.
        let thread = Thread {
            if unshare(newNetwork) { box.value = body() }
            done.signal()
        }
        thread.start()
        done.wait()
        return box.value
    }

    static let isAllowed = run { true } ?? false

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
        return request.withUnsafeMutableBytes { ioctl(socket, 0x8914, $0.baseAddress!) } == 0
    }

    private final class Box<Value>: @unchecked Sendable {
        var value: Value?
    }
}

@Suite("The route socket")
struct RouteSocketTests {
    @Test(arguments: ["127.0.0.1", "127.8.9.10", "::ffff:127.0.0.1"])
    func `finds loopback by the kernel's routes`(address: String) throws {
        #expect(try RouteSocket.status(of: address) == .reachable(.loopback))
    }

    @Test(arguments: ["", "localhost", "[::1]", "127.1"])
    func `asks about addresses only`(text: String) {
        #expect(throws: NetlinkError.noAddress) { try RouteSocket.status(of: text) }
    }

    @Test func `has nothing to report if nothing changes`() throws {
        let socket = try RouteSocket()
        #expect(fcntl(socket.descriptor, F_GETFD) & FD_CLOEXEC != 0)
        #expect(fcntl(socket.descriptor, F_GETFL) & O_NONBLOCK != 0)
        // Changes made by others on this machine may be reported; they are read here.
        _ = try socket.takeChanges()
    }

    /// A change of an address (RTM_NEWADDR), and the end of a reply.
    @Test(
        arguments: [
            ([], false), (UInt32(16).bytes + UInt16(3).bytes + filler, false),
            (UInt32(16).bytes + UInt16(20).bytes + filler, true),
            // Truncated, and with a wrong length.
            ([16, 0], true), (UInt32(9).bytes + UInt16(3).bytes + filler, true),
        ] as [([UInt8], Bool)])
    func `treats an unreadable message as a change`(bytes: [UInt8], isChange: Bool) {
        #expect(RouteSocket.reportsChange(bytes) == isChange)
    }

    private static let filler = [UInt8](repeating: 0, count: 10)

    @Test(
        arguments: [
            (ENETUNREACH, true), (EHOSTUNREACH, true), (EAFNOSUPPORT, true), (EOPNOTSUPP, true),
            (EPERM, false), (ENOBUFS, false), (0, false),
        ])
    func `recognizes the errors for a missing route`(code: Int32, isMissingRoute: Bool) {
        #expect(RouteSocket.meansUnreachable(code) == isMissingRoute)
    }

    @Test func `reports the Internet's status, reachable or not`() throws {
        #expect(try RouteSocket.statusOfInternet() != .unknown)
    }

    @Test(
        arguments: [
            ("phy80211", "", "wlan"), ("wireless", "", "wlan"),
            ("queues", "DEVTYPE=wwan\nINTERFACE=x\n", "wwan"), ("queues", "INTERFACE=x\n", nil),
        ] as [(String, String, String?)])
    func `knows a wireless interface by the folders of its driver, too`(
        name: String, uevent: String, type: String?
    ) throws {
        let folder = FileManager.default.temporaryDirectory
            .appendingPathComponent("pinfold-device-\(UUID().uuidString)")
        defer { try? FileManager.default.removeItem(at: folder) }
        try FileManager.default.createDirectory(
            at: folder.appendingPathComponent(name), withIntermediateDirectories: true)
        try Data(uevent.utf8).write(to: folder.appendingPathComponent("uevent"))
        #expect(RouteSocket.deviceType(inFolder: folder.path) == type)
    }

    @Test(.enabled(if: Namespace.isAllowed, "this process may not make network namespaces"))
    func `reports a change if the kernel's reports overflow`() throws {
        let seen = Namespace.run { () -> Result<([Bool], NetworkStatus), any Error> in
            Result {
                let socket = try RouteSocket()
                // As small as the kernel allows, which is about 2 KiB.
                var bytes: Int32 = 1
                setsockopt(
                    socket.descriptor, SOL_SOCKET, SO_RCVBUF, &bytes,
                    socklen_t(MemoryLayout<Int32>.size))
                for count in 1...101 { _ = Namespace.setLoopback(up: count % 2 == 1) }
                let changes = [try socket.takeChanges(), try socket.takeChanges()]
                return (changes, try RouteSocket.status(of: "127.0.0.1"))
            }
        }
        let (changes, status) = try #require(seen).get()
        #expect(changes == [true, false])
        #expect(status == .reachable(.loopback))
    }

    private struct Seen: Sendable {
        var statuses: [NetworkStatus] = []
        var changes: [Bool] = []
        var internet: NetworkStatus?
    }

    @Test(.enabled(if: Namespace.isAllowed, "this process may not make network namespaces"))
    func `notices immediately that a route is lost or found`() throws {
        let seen = Namespace.run { () -> Result<Seen, any Error> in
            Result {
                var seen = Seen()
                let socket = try RouteSocket()
                for up in [false, true, false, true] {
                    guard Namespace.setLoopback(up: up) else { throw NetlinkError.system(errno) }
                    seen.changes.append(try socket.takeChanges())
                    seen.statuses.append(try RouteSocket.status(of: "127.0.0.1"))
                }
                seen.changes.append(try socket.takeChanges())
                seen.internet = try RouteSocket.statusOfInternet()
                return seen
            }
        }
        let found = try #require(seen).get()
        #expect(found.changes == [false, true, true, true, false])
        #expect(
            found.statuses == [
                .notReachable, .reachable(.loopback), .notReachable, .reachable(.loopback),
            ])
        #expect(found.internet == .notReachable)
    }
}
