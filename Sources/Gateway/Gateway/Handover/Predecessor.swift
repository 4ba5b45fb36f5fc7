import CLinux
import Clocks
import EventLoop
import PinfoldConfiguration
import PinfoldMetrics
import PinfoldTLS
import Supervision

/// The gateway that has started this process to be its successor, as this one sees it: it gives its
/// listening sockets, serves until this process is ready, and ends when it has finished.
package final class Predecessor {
    /// The environment variable with the number of the descriptor that leads to it.
    static let variable = "PINFOLD_HANDOVER"
    /// How long its sockets are waited for: it sends them at once.
    private static let patienceMilliseconds: Int32 = 10_000
    /// How long the cache's database is waited for: what is on its way to disk is written before.
    private static let cachePatienceMilliseconds = 60_000

    let pid: pid_t
    private let channel: MessageSocket
    /// The sockets that no listener has taken over yet.
    private(set) var opened: [OpenedSocket] = []
    /// Those that the service manager had passed to it.
    package private(set) var passed = PassedDescriptors()

    /// Its counters, since they were last asked for.
    private var counters: FormerCounters?

    /// The pipe with the keys of its clients' session tickets.
    private var ticketKeys: Int32?

    private var isToAccept = false
    private var awaitsCacheLock = false
    private var cacheLock: Int32?

    /// A listening socket with its descriptor, which is this process's to close.
    struct OpenedSocket {
        var name: String
        var address: String
        var isAdmin: Bool
        var descriptor: Int32
    }

    /// Why nothing can be taken over.
    package enum TakeoverError: Error, CustomStringConvertible {
        case variable(String)
        case stranger
        case call(MessageSocket.CallError)
        case incomplete(String)

        package var description: String {
            let reason =
                switch self {
                case .variable(let text): "\(Predecessor.variable) is \"\(text)\", not a descriptor"
                case .stranger:
                    "\(Predecessor.variable) does not lead to the process that started this one"
                case .call(let error): "\(error)"
                case .incomplete(let what): what
                }
            return "cannot take over from another gateway: " + reason
        }
    }

    private init(channel: MessageSocket) throws(TakeoverError) {
        pid = getppid()
        guard channel.isConnected(to: pid) else { throw .stranger }
        self.channel = channel
        try receiveSockets()
    }

    deinit { if let ticketKeys { Descriptors.close(ticketKeys) } }

    /// The predecessor that the environment names, with its sockets; `nil` if it names none. The
    /// variable is removed. Called before threads are started.
    package static func takeFromEnvironment() throws(TakeoverError) -> Predecessor? {
        guard let text = getenv(variable).map({ String(cString: $0) }) else { return nil }
        unsetenv(variable)
        guard let number = Int32(text), fcntl_int(number, F_SETFD, FD_CLOEXEC) == 0 else {
            throw .variable(text)
        }
        return try Predecessor(channel: MessageSocket(descriptor: number))
    }

    private func receiveSockets() throws(TakeoverError) {
        while true {
            let received: MessageSocket.Received
            do throws(MessageSocket.CallError) {
                received = try channel.receive(waitingAtMost: Self.patienceMilliseconds)
            } catch {
                throw .call(error)
            }
            switch received {
            case .nothing: throw .incomplete("it sends no sockets")
            case .end: throw .incomplete("it has ended")
            case .message(let bytes, let descriptors):
                guard case .sockets(let sockets, let isLast)? = HandoverMessage(bytes),
                    sockets.count == descriptors.count
                else {
                    for descriptor in descriptors { Descriptors.close(descriptor) }
                    throw .incomplete("it speaks another language")
                }
                for (socket, descriptor) in zip(sockets, descriptors) { take(socket, descriptor) }
                if isLast { return }
            }
        }
    }

    private func take(_ socket: HandedSocket, _ descriptor: Int32) {
        switch socket {
        case .opened(let name, let address, let isAdmin):
            opened.append(
                OpenedSocket(
                    name: name, address: address, isAdmin: isAdmin, descriptor: descriptor))
        case .passed(let name):
            passed.all.append(PassedDescriptors.Descriptor(name: name, number: descriptor))
        }
    }

    /// Takes the sockets that match, which are then the caller's to close.
    func takeSockets(where matches: (OpenedSocket) -> Bool) -> [OpenedSocket] {
        let taken = opened.filter(matches)
        opened.removeAll(where: matches)
        return taken
    }

    /// The lock of the cache's folder, which the predecessor hands over with the database; `nil` if
    /// it has another folder, or does not use the disk.
    func takeCacheLock(of folder: String) -> Int32? {
        send(.cache(folder: folder))
        let end = Clock.monotonicMilliseconds() + Int64(Self.cachePatienceMilliseconds)
        awaitsCacheLock = true
        defer { awaitsCacheLock = false }
        while awaitsCacheLock, Clock.monotonicMilliseconds() < end {
            if receive(waitingAtMost: 100) { break }
        }
        return cacheLock.take()
    }

    /// Tells it that this process could serve, and waits until it stops accepting. If it ends
    /// instead, nobody else accepts.
    func ready(version: String) {
        // The sockets that no listener has taken over are closed on both sides.
        let unused = opened.map {
            HandedSocket.opened(name: $0.name, address: $0.address, isAdmin: $0.isAdmin)
        }
        for socket in opened { Descriptors.close(socket.descriptor) }
        opened = []
        send(.ready(version: version, unused: unused))
        let end = Clock.monotonicMilliseconds() + Int64(Self.patienceMilliseconds)
        while !isToAccept, Clock.monotonicMilliseconds() < end {
            if receive(waitingAtMost: 100) { return }
        }
    }

    /// Tells it that this process was told to end: it need not take its place.
    func leave() { send(.leaving) }

    /// Tells it that this process gives up: it goes on.
    package func failed(_ reason: String) {
        // What does not fit into a message is in the log.
        send(.failed(String(reason.prefix(8000))))
    }

    private func send(_ message: HandoverMessage) {
        // If it has ended, nobody has to be told.
        try? channel.send(message.bytes)
    }

    /// Receives what it has sent meanwhile.
    /// - Returns: whether it has ended.
    func receive(waitingAtMost milliseconds: Int32 = 0) -> Bool {
        var milliseconds = milliseconds
        while true {
            defer { milliseconds = 0 }
            switch try? channel.receive(waitingAtMost: milliseconds) {
            case .nothing: return false
            case .message(let bytes, let descriptors):
                let message = HandoverMessage(bytes)
                if message == .accept { isToAccept = true }
                // One that comes too late is closed: it would keep the lock from everybody.
                if message == .lock, awaitsCacheLock {
                    awaitsCacheLock = false
                    cacheLock = descriptors.first
                    if descriptors.count == 1 { continue }
                }
                if message == .ticketKeys, ticketKeys == nil, descriptors.count == 1 {
                    ticketKeys = descriptors[0]
                    continue
                }
                if message == .counters, let file = descriptors.first {
                    counters = MessageFile.read(file).map { FormerCounters($0) } ?? counters
                }
                for descriptor in descriptors { Descriptors.close(descriptor) }
            case .end, nil: return true
            }
        }
    }

    /// Gives the keys of its clients' session tickets, if it has sent any.
    func passOnTicketKeys(to keys: TLSTicketKeys) {
        guard let pipe = ticketKeys.take() else { return }
        defer { Descriptors.close(pipe) }
        let room = UnsafeMutableRawBufferPointer.allocate(
            byteCount: TLSTicketKeys.maximumBytes, alignment: 8)
        defer {
            if let start = room.baseAddress { explicit_bzero(start, room.count) }
            room.deallocate()
        }
        let count = SecretPipe.read(pipe, into: room)
        keys.takeOver(UnsafeRawBufferPointer(rebasing: room[..<count]))
    }

    /// Its counters, if they have come since the last call.
    func takeCounters() -> FormerCounters? { counters.take() }
}
