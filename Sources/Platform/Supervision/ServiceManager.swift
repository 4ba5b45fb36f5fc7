import CLinux

/// The service manager that started this process, such as systemd, and what it is told: whether the
/// service is ready, what it is waiting for, that it still works (sd_notify(3)).
///
/// Each message is one datagram to the manager's socket. Nobody answers. If there is no space in
/// the manager's queue, a message that only has a status is lost, and any other waits for at most
/// ``patienceSeconds``.
package final class ServiceManager: Sendable {
    /// How long a message waits for space in the manager's queue.
    static let patienceSeconds = 1

    /// Where its socket is.
    package let address: NotificationAddress
    /// By when each `watchdog` must follow the one before, in microseconds; `nil` if none is
    /// expected.
    package let watchdogMicroseconds: Int64?

    /// A manager with a socket at this address.
    package init(address: NotificationAddress, watchdogMicroseconds: Int64? = nil) {
        self.address = address
        self.watchdogMicroseconds = watchdogMicroseconds
    }

    /// One line of a message.
    package enum Assignment: Sendable, Equatable {
        /// The start, or a reload, is complete.
        case ready
        /// A reload begins, at this time of the monotonic clock; `ready` ends it.
        case reloading(monotonicMicroseconds: Int64)
        /// The service is shutting down.
        case stopping
        /// What it is doing, for people, on one line.
        case status(String)
        /// The service failed with this errno.
        case failed(errno: Int32)
        /// The service works.
        case watchdog
        /// The service needs this long from now on for what it is doing.
        case extendTimeout(microseconds: Int64)
        /// Another process is the service from now on.
        case mainProcess(pid_t)
        /// Keeps the descriptors of this message for the service's next process, under a name.
        case storeDescriptors(name: String)
        /// Forgets the descriptors kept under a name.
        case removeDescriptors(name: String)

        /// The assignment, or two, as written. Line feeds in a text would begin another one.
        var text: String {
            switch self {
            case .ready: "READY=1"
            case .reloading(let time): "RELOADING=1\nMONOTONIC_USEC=\(time)"
            case .stopping: "STOPPING=1"
            case .status(let text): "STATUS=" + text.split(separator: "\n").joined(separator: " ")
            case .failed(let code): "ERRNO=\(code)"
            case .watchdog: "WATCHDOG=1"
            case .extendTimeout(let time): "EXTEND_TIMEOUT_USEC=\(time)"
            case .mainProcess(let pid): "MAINPID=\(pid)"
            case .storeDescriptors(let name): "FDSTORE=1\nFDNAME=\(name)"
            case .removeDescriptors(let name): "FDSTOREREMOVE=1\nFDNAME=\(name)"
            }
        }
    }

    /// Sends one message.
    ///
    /// - Parameters:
    ///   - descriptors: sent along, for `storeDescriptors`; the manager gets copies.
    /// - Returns: 0, or the error number of the call that failed. A service works without its
    ///   manager, so this is for the log.
    @discardableResult
    package func send(_ assignments: [Assignment], descriptors: [Int32] = []) -> Int32 {
        let flags = Int32(SOCK_DGRAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue)
        let fd = socket(AF_UNIX, flags, 0)
        guard fd >= 0 else { return __errno_location().pointee }
        defer { close(fd) }
        var patience = timeval(tv_sec: Self.patienceSeconds, tv_usec: 0)
        _ = setsockopt(
            fd, SOL_SOCKET, SO_SNDTIMEO, &patience, socklen_t(MemoryLayout<timeval>.size))
        var (address, length) = self.address.kernelForm
        let isStatus = assignments.allSatisfy { if case .status = $0 { true } else { false } }
        let waiting = isStatus ? Int32(MSG_DONTWAIT) : 0
        let message = Array(assignments.map(\.text).joined(separator: "\n").utf8)
        while true {
            let sent = send_with_descriptors(
                fd, &address, length, message, message.count, descriptors, descriptors.count,
                waiting)
            if sent >= 0 { return 0 }
            guard sent == -Int(EINTR) else { return Int32(-sent) }
        }
    }
}

extension ServiceManager {
    /// The variables by which a manager says where its socket is and what it expects.
    static let variables = ["NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID"]

    /// The manager that the environment names, or `nil` if it names none.
    ///
    /// - Parameters:
    ///   - pid: this process. A watchdog may be meant for another one.
    ///   - variable: the value of a variable, or `nil` if it is not set.
    package convenience init?(
        pid: pid_t, variable: (String) -> String?
    ) throws(NotificationAddress.ParseError) {
        guard let text = variable("NOTIFY_SOCKET"), !text.isEmpty else { return nil }
        let address = try NotificationAddress(parsing: text)
        let isMeant = variable("WATCHDOG_PID").map { pid_t($0) == pid } ?? true
        let interval = variable("WATCHDOG_USEC").flatMap { Int64($0) }
        self.init(
            address: address,
            watchdogMicroseconds: isMeant ? interval.flatMap { $0 > 0 ? $0 : nil } : nil)
    }

    /// The manager of this process. The variables are removed: a child is another service, or none.
    /// Called before threads are started, which could read the environment meanwhile.
    package static func takeFromEnvironment()
        throws(NotificationAddress.ParseError) -> ServiceManager?
    {
        defer { for name in variables { unsetenv(name) } }
        return try ServiceManager(pid: getpid(), variable: environmentVariable)
    }
}

/// The value of an environment variable, or `nil` if it is not set.
func environmentVariable(_ name: String) -> String? { getenv(name).map { String(cString: $0) } }
