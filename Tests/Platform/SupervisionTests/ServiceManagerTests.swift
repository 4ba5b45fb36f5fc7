import CLinux
import TestSupport
import Testing

@testable import Supervision

/// A manager's socket in a folder, or in the abstract namespace.
private final class ManagerSocket {
    let address: NotificationAddress
    private let descriptor: Int32
    private let folder = TemporaryFolder()

    init(isAbstract: Bool) throws {
        let name = isAbstract ? "@pinfold-test-\(getpid())-\(UInt32.random(in: 0 ... .max))" : nil
        address = try NotificationAddress(parsing: name ?? folder.path + "/notify")
        descriptor = socket(
            AF_UNIX, Int32(SOCK_DGRAM.rawValue | SOCK_NONBLOCK.rawValue | SOCK_CLOEXEC.rawValue), 0)
        var (form, length) = address.kernelForm
        let code = withUnsafePointer(to: &form) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { bind(descriptor, $0, length) }
        }
        try #require(code == 0)
    }

    deinit { close(descriptor) }

    /// The next message, which has already been sent.
    func message() throws -> String {
        var bytes = [UInt8](repeating: 0, count: 4096)
        let count = recv(descriptor, &bytes, bytes.count, 0)
        try #require(count >= 0)
        return String(decoding: bytes[..<count], as: UTF8.self)
    }

    /// The next message's descriptors.
    func descriptors() throws -> [Int32] {
        var bytes = [UInt8](repeating: 0, count: 4096)
        var control = [Int](repeating: 0, count: 256)
        return try bytes.withUnsafeMutableBytes { bytes in
            try control.withUnsafeMutableBytes { control in
                var part = iovec(iov_base: bytes.baseAddress, iov_len: bytes.count)
                return try withUnsafeMutablePointer(to: &part) { part in
                    var message = msghdr()
                    message.msg_iov = part
                    message.msg_iovlen = 1
                    message.msg_control = control.baseAddress
                    message.msg_controllen = control.count
                    try #require(recvmsg(descriptor, &message, 0) >= 0)
                    let head = MemoryLayout<cmsghdr>.size
                    guard message.msg_controllen >= head else { return [] }
                    let length = control.load(as: cmsghdr.self).cmsg_len
                    return stride(from: head, to: Int(length), by: 4).map {
                        control.load(fromByteOffset: $0, as: Int32.self)
                    }
                }
            }
        }
    }
}

@Suite("What the service manager is told") struct ServiceManagerTests {
    @Test(arguments: [false, true])
    func `a message is one datagram with a line for each assignment`(isAbstract: Bool) throws {
        let socket = try ManagerSocket(isAbstract: isAbstract)
        let manager = ServiceManager(address: socket.address)
        #expect(manager.send([.ready, .status("serving")]) == 0)
        #expect(manager.send([.stopping]) == 0)
        #expect(try socket.message() == "READY=1\nSTATUS=serving")
        #expect(try socket.message() == "STOPPING=1")
    }

    @Test func `assignments are written as sd_notify says`() {
        let texts: [(ServiceManager.Assignment, String)] = [
            (.ready, "READY=1"),
            (.reloading(monotonicMicroseconds: 12), "RELOADING=1\nMONOTONIC_USEC=12"),
            (.stopping, "STOPPING=1"),
            (.status("a b"), "STATUS=a b"),
            (.status("a\nMAINPID=1\n"), "STATUS=a MAINPID=1"),
            (.failed(errno: 98), "ERRNO=98"),
            (.watchdog, "WATCHDOG=1"),
            (.extendTimeout(microseconds: 5), "EXTEND_TIMEOUT_USEC=5"),
            (.mainProcess(7), "MAINPID=7"),
            (.storeDescriptors(name: "web"), "FDSTORE=1\nFDNAME=web"),
            (.removeDescriptors(name: "web"), "FDSTOREREMOVE=1\nFDNAME=web"),
        ]
        for (assignment, text) in texts { #expect(assignment.text == text) }
    }

    @Test func `descriptors are sent along`() throws {
        let socket = try ManagerSocket(isAbstract: false)
        let manager = ServiceManager(address: socket.address)
        var ends: [Int32] = [-1, -1]
        try #require(pipe(&ends) == 0)
        defer { for end in ends { close(end) } }
        #expect(manager.send([.storeDescriptors(name: "pipe")], descriptors: ends) == 0)
        let received = try socket.descriptors()
        defer { for end in received { close(end) } }
        try #require(received.count == 2)
        try #require(write(received[1], "x", 1) == 1)
        var byte: UInt8 = 0
        #expect(read(ends[0], &byte, 1) == 1)
        #expect(byte == UInt8(ascii: "x"))
    }

    @Test func `a manager that does not read loses statuses, and is not waited for`() throws {
        let socket = try ManagerSocket(isAbstract: false)
        let manager = ServiceManager(address: socket.address)
        var sent = 0
        while manager.send([.status("\(sent)")]) == 0 {
            sent += 1
            try #require(sent < 100_000)
        }
        #expect(manager.send([.status("lost")]) == EAGAIN)
        #expect(try socket.message() == "STATUS=0")
        #expect(manager.send([.ready]) == 0)
    }

    @Test func `a manager that is gone is an error number`() throws {
        let folder = TemporaryFolder()
        let manager = ServiceManager(
            address: try NotificationAddress(parsing: folder.path + "/none"))
        #expect(manager.send([.ready]) == ENOENT)
        let many = [Int32](repeating: 0, count: 254)
        #expect(manager.send([.storeDescriptors(name: "x")], descriptors: many) == EINVAL)
    }

    @Test(
        arguments: [
            ("relative", .unsupported), ("", .unsupported), ("@", .unsupported),
            ("vsock:2:1234", .unsupported),
            ("/" + String(repeating: "x", count: 107), .tooLong),
            ("@" + String(repeating: "x", count: 107), .tooLong),
        ] as [(String, NotificationAddress.ParseError)])
    func `an address is a path or an abstract name`(
        text: String, error: NotificationAddress.ParseError
    ) {
        #expect(throws: error) { try NotificationAddress(parsing: text) }
        #expect(throws: Never.self) {
            try NotificationAddress(parsing: "/" + String(repeating: "x", count: 106))
        }
    }

    private func manager(_ variables: [String: String]) throws -> ServiceManager? {
        try ServiceManager(pid: 42) { variables[$0] }
    }

    @Test func `the environment names the manager and its watchdog`() throws {
        #expect(try manager([:]) == nil)
        #expect(try manager(["NOTIFY_SOCKET": "", "WATCHDOG_USEC": "1"]) == nil)
        let plain = try #require(try manager(["NOTIFY_SOCKET": "@x"]))
        #expect(plain.address.text == "@x")
        #expect(plain.watchdogMicroseconds == nil)
        #expect(throws: NotificationAddress.ParseError.unsupported) {
            try manager(["NOTIFY_SOCKET": "x"])
        }
    }

    @Test(
        arguments: [
            ("10000000", nil, 10_000_000), ("10000000", "42", 10_000_000),
            ("10000000", "43", nil), ("10000000", "x", nil), ("0", nil, nil), ("-1", nil, nil),
            ("x", nil, nil), ("", nil, nil),
        ] as [(String, String?, Int64?)])
    func `the watchdog is for one process`(
        interval: String, pid: String?, expected: Int64?
    ) throws {
        var variables = ["NOTIFY_SOCKET": "/n", "WATCHDOG_USEC": interval]
        variables["WATCHDOG_PID"] = pid
        #expect(try manager(variables)?.watchdogMicroseconds == expected)
    }
}

@Suite("Descriptors from the service manager") struct PassedDescriptorTests {
    private func passed(
        _ count: String?, _ names: String? = nil, pid: String? = "42"
    ) throws -> PassedDescriptors {
        let variables = ["LISTEN_PID": pid, "LISTEN_FDS": count, "LISTEN_FDNAMES": names]
        return try PassedDescriptors(pid: 42) { variables[$0] ?? nil }
    }

    @Test func `they begin at 3, each with its name`() throws {
        let found = try passed("3", "web:admin:web")
        #expect(found.all.map(\.number) == [3, 4, 5])
        #expect(found.names == ["web", "admin"])
        #expect(found["web"] == [3, 5])
        #expect(found["other"] == [])
    }

    @Test func `without names they are unknown`() throws {
        #expect(try passed("2").all.map(\.name) == ["unknown", "unknown"])
        #expect(try passed("2", "web:").all.map(\.name) == ["web", "unknown"])
    }

    @Test(arguments: [nil, "43", "", "x"])
    func `those of another process are none`(pid: String?) throws {
        #expect(try passed("2", "a:b", pid: pid).all.isEmpty)
    }

    @Test func `nothing is passed`() throws {
        #expect(try passed(nil).all.isEmpty)
        #expect(try passed("0").all.isEmpty)
        #expect(try passed("0", "").all.isEmpty)
    }

    @Test(arguments: ["x", "-1", "", "1000000", "2147483648"])
    func `the number must be one`(count: String) {
        #expect(throws: PassedDescriptors.ParseError.number(count)) { try passed(count) }
    }

    @Test func `there must be a name for each`() {
        #expect(throws: PassedDescriptors.ParseError.names(1, descriptors: 2)) {
            try passed("2", "web")
        }
        #expect(throws: PassedDescriptors.ParseError.names(3, descriptors: 2)) {
            try passed("2", "a:b:c")
        }
    }
}

@Suite("The journal") struct JournalTests {
    @Test(
        arguments: [
            ("8:1234", true), ("8:1235", false), ("9:1234", false), ("8:", false), (":1234", false),
            ("8", false), ("8:1234:1", false), ("", false), ("x:y", false), (nil, false),
        ] as [(String?, Bool)])
    func `a stream is the journal's by device and inode`(variable: String?, isIt: Bool) {
        #expect(Journal.names(variable, device: 8, inode: 1234) == isIt)
    }
}
