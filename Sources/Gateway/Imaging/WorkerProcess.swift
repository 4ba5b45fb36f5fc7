import CLinux
import Clocks
import Files
import ImageCodecs

/// Why a decoding process is given up.
enum WorkerError: Error, Equatable {
    /// It could not be started; the errno.
    case notStarted(Int32)
    /// It has ended, or closed its socket.
    case ended
    /// It exceeded its time.
    case late
    /// What it sent is not a valid answer.
    case nonsense
}

/// The gateway's handle of a decoding process. The owner is its only user, and must end it.
struct WorkerProcess: Sendable {
    let pid: pid_t
    /// Our end of the socket, which is non-blocking.
    let descriptor: Int32
    /// How many bytes of memory it may allocate.
    let memory: Int
    private(set) var confinement = Confinement(filtersCalls: false, boundsMemory: false)
    /// The number of images that it has decoded.
    private(set) var images = 0
    /// Since when it has been idle (monotonic nanoseconds).
    var idleSince: Int64 = 0

    /// Starts a process, and waits for its greeting.
    ///
    /// - Parameters:
    ///   - command: the path of the program, and the arguments before its own.
    ///   - deadline: monotonic nanoseconds.
    init(
        command: [String], memory: Int, seconds: Int, deadline: Int64
    ) throws(WorkerError) {
        var ends: [Int32] = [-1, -1]
        guard
            socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0, &ends) == 0
        else { throw .notStarted(__errno_location().pointee) }
        self.memory = memory
        descriptor = ends[0]
        let arguments = command + ["--memory", "\(memory)", "--seconds", "\(seconds)"]
        let (code, pid) = Self.spawn(arguments, socket: ends[1])
        close(ends[1])
        self.pid = pid
        guard code == 0, fcntl_int(descriptor, F_SETFL, O_NONBLOCK) == 0 else {
            close(descriptor)
            throw .notStarted(code)
        }
        do {
            let greeting = try receive(WorkerMessage.greetingBytes, deadline)
            guard let confinement = Confinement(greeting: greeting) else {
                throw WorkerError.nonsense
            }
            self.confinement = confinement
        } catch {
            _ = end()
            throw error as? WorkerError ?? .nonsense
        }
    }

    /// Starts the program with the socket as descriptors 0 and 1, nothing else open except
    /// /dev/null, all signals in their default state (our threads block them), and of the
    /// environment only what locates libraries.
    private static func spawn(_ arguments: [String], socket: Int32) -> (code: Int32, pid: pid_t) {
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        posix_spawn_file_actions_adddup2(&actions, socket, 0)
        posix_spawn_file_actions_adddup2(&actions, 0, 1)
        posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", O_WRONLY, 0)
        posix_spawn_file_actions_addclosefrom_np(&actions, 3)
        var attributes = posix_spawnattr_t()
        posix_spawnattr_init(&attributes)
        defer { posix_spawnattr_destroy(&attributes) }
        var none = sigset_t()
        var all = sigset_t()
        sigemptyset(&none)
        sigfillset(&all)
        posix_spawnattr_setsigmask(&attributes, &none)
        posix_spawnattr_setsigdefault(&attributes, &all)
        posix_spawnattr_setflags(
            &attributes, Int16(POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF))
        var argv = arguments.map { strdup($0) } + [nil]
        var environment = ["LD_LIBRARY_PATH"].compactMap { name in
            getenv(name).map { strdup(name + "=" + String(cString: $0)) }
        }
        environment.append(nil)
        defer { for text in argv + environment { free(text) } }
        var pid = pid_t()
        let code = posix_spawn(&pid, arguments[0], &actions, &attributes, &argv, &environment)
        return (code, pid)
    }

    /// Whether it is waiting for a question: it has neither ended nor sent anything unasked.
    var isReady: Bool {
        var entry = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
        return poll(&entry, 1, 0) == 0
    }

    /// Processes an image. Any error makes the process unusable.
    mutating func apply(
        _ plan: ImagePlan, to image: [UInt8], deadline: Int64
    ) throws(WorkerError) -> Result<WrittenImage?, ImageCodecError> {
        images += 1
        try send(WorkerQuestion(plan: plan, count: image.count).head, deadline)
        try send(image, deadline)
        let head = try receive(WorkerMessage.answerBytes, deadline)
        guard let answer = WorkerAnswer(head: head) else { throw .nonsense }
        switch answer {
        case .unchanged:
            return .success(nil)
        case .failed(let failure):
            return .failure(failure)
        case .written(let kind, let count):
            guard count <= plan.maximumResultBytes, kind == .png || kind == .jpeg else {
                throw .nonsense
            }
            let bytes = try receive(count, deadline)
            guard ImageKind(signatureOf: bytes) == kind else { throw .nonsense }
            return .success(WrittenImage(kind: kind, bytes: bytes))
        }
    }

    /// Ends the process, waits until it is gone, and returns its status from waitpid(2).
    func end() -> Int32 {
        close(descriptor)
        kill(pid, SIGKILL)
        var status: Int32 = 0
        _ = uninterrupted { waitpid(pid, &status, 0) }
        return status
    }

    private func send(_ bytes: [UInt8], _ deadline: Int64) throws(WorkerError) {
        var offset = 0
        while offset < bytes.count {
            let count = bytes[offset...].withUnsafeBytes { rest in
                uninterrupted {
                    CLinux.send(descriptor, rest.baseAddress, rest.count, Int32(MSG_NOSIGNAL))
                }
            }
            if count < 0 {
                try wait(for: POLLOUT, deadline, code: Int32(-count))
            } else {
                offset += count
            }
        }
    }

    private func receive(_ count: Int, _ deadline: Int64) throws(WorkerError) -> [UInt8] {
        var bytes = [UInt8](repeating: 0, count: count)
        var offset = 0
        while offset < count {
            let received = bytes.withUnsafeMutableBytes { bytes in
                let rest = UnsafeMutableRawBufferPointer(rebasing: bytes[offset...])
                return uninterrupted { recv(descriptor, rest.baseAddress, rest.count, 0) }
            }
            if received < 0 {
                try wait(for: POLLIN, deadline, code: Int32(-received))
            } else if received == 0 {
                throw .ended
            } else {
                offset += received
            }
        }
        return bytes
    }

    /// After a failed call: waits if it failed only because it would have blocked.
    private func wait(
        for events: Int32, _ deadline: Int64, code: Int32
    ) throws(WorkerError) {
        guard code == EAGAIN else { throw .ended }
        let left = deadline - Clock.monotonicNanoseconds()
        guard left > 0 else { throw .late }
        var entry = pollfd(fd: descriptor, events: Int16(events), revents: 0)
        // Up to a millisecond after the deadline, rather than before it over and over.
        _ = poll(&entry, 1, Int32(clamping: left / 1_000_000 + 1))
    }
}
