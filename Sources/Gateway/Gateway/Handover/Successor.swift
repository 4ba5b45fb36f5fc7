import CLinux
import CacheStore
import PinfoldTLS
import Supervision

/// How this process was started, for its successor to be started likewise.
package struct Invocation: Sendable {
    /// The file of the program.
    package var program: ProgramFile
    /// With the program's name.
    package var arguments: [String]
    /// `NAME=value`
    package var environment: [String]

    /// An invocation by these values.
    package init(program: ProgramFile, arguments: [String], environment: [String]) {
        (self.program, self.arguments, self.environment) = (program, arguments, environment)
    }

    /// That of this process. Called before anything changes the environment or the working folder.
    package static func ofProcess(arguments: [String]) -> Invocation {
        var environment: [String] = []
        var next = process_environment()
        while let entry = next?.pointee {
            environment.append(String(cString: entry))
            next = next?.advanced(by: 1)
        }
        return Invocation(
            program: .ofProcess(name: arguments.first ?? ""), arguments: arguments,
            environment: environment)
    }

    /// Variables that are about one process alone.
    private static let own = [
        "LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES", "WATCHDOG_PID", Predecessor.variable,
    ]

    /// The environment of a successor that finds a descriptor under a number.
    func environment(descriptor: Int32) -> [String] {
        environment.filter { entry in
            !Self.own.contains { entry.hasPrefix($0 + "=") }
        } + ["\(Predecessor.variable)=\(descriptor)"]
    }
}

/// The process that this one has started to be its successor. Belongs to the main thread.
final class Successor {
    /// How long it may take until it serves: it may have to read a large cache's index.
    static let patienceMilliseconds: Int64 = 120_000
    /// The number of the descriptor that leads to this process.
    private static let descriptor: Int32 = 3

    let process: ChildProcess
    let channel: MessageSocket
    private let deadline: Int64
    private var reason: String?

    /// Why there is no successor.
    enum StartError: Error, CustomStringConvertible {
        case isFirstProcess
        case program(ProgramFile.SafetyError)
        case call(MessageSocket.CallError)
        /// It gave up.
        case failed(String)
        case ended(ChildProcess.Ended, String?)
        case late

        var description: String {
            switch self {
            case .isFirstProcess:
                "this is process 1 of its container, which would end with it: start another "
                    + "container instead"
            case .program(let error): "\(error)"
            case .call(let error): "\(error)"
            case .failed(let reason): reason
            case .ended(let how, let reason):
                "the new process did not get ready: \(how)" + (reason.map { ": \($0)" } ?? "")
            case .late:
                "the new process was not ready within \(Successor.patienceMilliseconds / 1000)s"
            }
        }
    }

    /// Starts the program again and sends it the sockets.
    ///
    /// - Parameters:
    ///   - sockets: with descriptors that remain ours.
    ///   - now: monotonic milliseconds.
    init(
        of invocation: Invocation, sockets: [(socket: HandedSocket, descriptor: Int32)], now: Int64
    ) throws(StartError) {
        guard getpid() != 1 else { throw .isFirstProcess }
        do throws(ProgramFile.SafetyError) {
            try invocation.program.check()
        } catch {
            throw .program(error)
        }
        deadline = now + Self.patienceMilliseconds
        do throws(MessageSocket.CallError) {
            let (ours, its) = try MessageSocket.pair()
            channel = ours
            process = try ChildProcess(
                invocation.program.path, arguments: invocation.arguments,
                environment: invocation.environment(descriptor: Self.descriptor),
                descriptor: its.descriptor, as: Self.descriptor)
        } catch {
            throw .call(error)
        }
        do throws(MessageSocket.CallError) {
            try send(sockets)
        } catch {
            // One that has ended is found out when it is looked after.
            guard !error.isOfClosedEnd else { return }
            process.end()
            throw .call(error)
        }
    }

    private func send(
        _ sockets: [(socket: HandedSocket, descriptor: Int32)]
    ) throws(MessageSocket.CallError) {
        var rest = sockets[...]
        repeat {
            let part = rest.prefix(HandoverMessage.socketsPerMessage)
            rest = rest.dropFirst(part.count)
            let message = HandoverMessage.sockets(part.map(\.socket), isLast: rest.isEmpty)
            try channel.send(message.bytes, descriptors: part.map(\.descriptor))
        } while !rest.isEmpty
    }

    /// Hands it the lock of the cache's folder; called on any thread.
    static func send(_ lock: DiskHandover, through channel: MessageSocket) {
        var descriptors: [Int32] = []
        if case .lock(let descriptor) = lock { descriptors = [descriptor] }
        // If it has ended, that is found out when it is looked after.
        try? channel.send(HandoverMessage.lock.bytes, descriptors: descriptors)
        for descriptor in descriptors { close(descriptor) }
    }

    /// Sends it the keys of clients' session tickets; none if there are none.
    func send(_ keys: TLSTicketKeys) throws(MessageSocket.CallError) {
        try keys.withPassedOn { passedOn throws(MessageSocket.CallError) in
            guard !passedOn.isEmpty else { return }
            try SecretPipe.with(passedOn) { pipe throws(MessageSocket.CallError) in
                try channel.send(HandoverMessage.ticketKeys.bytes, descriptors: [pipe])
            }
        }
    }

    /// It is to accept.
    func accept() {
        // If it has ended, that is found out when it is looked after.
        try? channel.send(HandoverMessage.accept.bytes)
    }

    /// Sends it what the counters are now, unless it does not take what it was sent before.
    func send(counters: [UInt8]) throws(MessageSocket.CallError) {
        try MessageFile.with(counters) { file throws(MessageSocket.CallError) in
            try channel.send(HandoverMessage.counters.bytes, descriptors: [file])
        }
    }

    /// How far it has come.
    enum Progress {
        case starting
        /// It waits for the database of the cache in a folder.
        case needsCache(folder: String)
        /// It could serve; its version.
        case ready(version: String, unused: [HandedSocket])
        case failed(StartError)
    }

    /// Looks whether it is ready, without waiting.
    func check(now: Int64) -> Progress {
        while true {
            switch try? channel.receive() {
            case .message(let bytes, let descriptors):
                for descriptor in descriptors { close(descriptor) }
                switch HandoverMessage(bytes) {
                case .ready(let version, let unused):
                    return .ready(version: version, unused: unused)
                case .cache(let folder): return .needsCache(folder: folder)
                case .failed(let text): reason = text
                case .sockets, .counters, .lock, .ticketKeys, .accept, .leaving, nil: break
                }
            case .end, nil:
                // It ends, or has closed the connection for no reason.
                guard let how = process.check() ?? endSoon(now) else { return .starting }
                return .failed(reason.map { .failed($0) } ?? .ended(how, nil))
            case .nothing:
                guard now < deadline else {
                    process.end()
                    return .failed(.late)
                }
                return .starting
            }
        }
    }

    /// One whose connection is closed cannot become ready.
    private func endSoon(_ now: Int64) -> ChildProcess.Ended? {
        if closedAt == nil { closedAt = now }
        guard let closedAt, now - closedAt > 1000 else { return nil }
        process.end()
        return process.check()
    }

    private var closedAt: Int64?

    /// How it has ended after it was ready, unless it was told to; `nil` while it runs.
    func hasFailed() -> ChildProcess.Ended? {
        while case .message(let bytes, let descriptors)? = try? channel.receive() {
            for descriptor in descriptors { close(descriptor) }
            if HandoverMessage(bytes) == .leaving { isLeaving = true }
        }
        let ended = process.check()
        if ended == .exited(0) { isLeaving = true }
        return isLeaving ? nil : ended
    }

    /// Whether it was told to end: nobody takes its place.
    private(set) var isLeaving = false
}
