import CLinux
import EventLoop
import HTTPCore
import PinfoldConfiguration
import PinfoldEngine
import Supervision

/// The listening sockets of the process. Each configured listener has one per worker, all on one
/// address (SO_REUSEPORT), so that the kernel distributes the connections; the administrative
/// listener has only the first worker's.
///
/// A listener may also take over sockets that the service manager passed (`fd:NAME`). Where there
/// are as many of an address as workers, or a multiple, each worker has its own; otherwise all
/// workers accept from all of them. A worker gets descriptors of its own, which it closes. The
/// passed ones stay open, so that a later configuration can use the sockets, too.
///
/// Of a socket that was opened here, this keeps a descriptor of its own as well, to hand it over to
/// a successor. From a predecessor all sockets are taken over, also where there were more of them
/// than there are workers now: what waits in a socket that is closed would be lost.
final class ListenerSockets {
    static let adminName = "admin"

    private let workers: Int
    private let routes: RouteLabels
    private var passed: [PassedSocket]
    private let predecessor: Predecessor?
    /// What was configured and what it is bound to; a port of 0 keeps the port it got.
    private var bound: [Bound] = []
    /// Whether workers get sockets again that they have closed.
    private var isAgain = false

    /// The Unix sockets.
    private var unix: UnixListeners

    private struct Bound {
        var name: String
        var asked: Endpoint
        var actual: Endpoint
        var isAdmin: Bool
        /// The sockets' inode numbers.
        var inodes: Set<UInt64>
        /// The name under which they were passed; `nil` if they were opened here.
        var passedAs: String?
        /// The path of a passed Unix socket; `nil` for an address of the network.
        var path: String?
        /// Whether all workers accept from all of them.
        var isShared = false
        /// Our own descriptors of those that were opened here, for each worker.
        var kept: [[Int32]] = []
    }

    init(
        workers: Int, routes: RouteLabels, passed: [PassedSocket] = [],
        predecessor: Predecessor? = nil
    ) {
        self.workers = workers
        self.routes = routes
        self.passed = passed
        self.predecessor = predecessor
        unix = UnixListeners(predecessor: predecessor)
    }

    /// Whether the files of Unix sockets are a successor's.
    var leavesFiles: Bool {
        get { unix.leavesFiles }
        set { unix.leavesFiles = newValue }
    }

    /// Removes the files of the Unix sockets at the end, unless a successor has taken their paths.
    func removeFiles() { unix.close() }

    deinit { close() }

    /// All sockets, for a successor; the descriptors remain ours.
    var handed: [(socket: HandedSocket, descriptor: Int32)] {
        bound.flatMap { bound in
            unique(bound.kept.joined()).map { descriptor in
                (
                    .opened(
                        name: bound.name, address: "\(bound.asked)", isAdmin: bound.isAdmin),
                    descriptor
                )
            }
        } + passed.map { (.passed(name: $0.name), $0.descriptor) }
            + unix.handed
    }

    /// Closes our own descriptors of sockets that a successor does not use: when the workers have
    /// closed theirs, nothing listens there any more.
    func release(_ unused: [HandedSocket]) {
        unix.release(unused)
        for case .opened(let name, let address, let isAdmin) in unused {
            for index in bound.indices
            where bound[index].name == name && "\(bound[index].asked)" == address
                && bound[index].isAdmin == isAdmin
            {
                for descriptor in bound[index].kept.joined() { Descriptors.close(descriptor) }
                bound[index].kept = bound[index].kept.map { _ in [] }
            }
        }
    }

    /// One descriptor of each socket.
    private func unique(_ descriptors: some Sequence<Int32>) -> [Int32] {
        var known: Set<UInt64> = []
        return descriptors.filter { descriptor in
            ListeningSockets.inode(of: descriptor).map { known.insert($0).inserted } ?? true
        }
    }

    /// Closes our own descriptors. When the workers have closed theirs, nothing listens any more.
    func close() {
        for descriptor in bound.flatMap(\.kept).joined() { Descriptors.close(descriptor) }
        for index in bound.indices { bound[index].kept = bound[index].kept.map { _ in [] } }
        unix.leave()
    }

    /// Closes the passed sockets that a configuration does not use, and returns them.
    func closeUnused(by configuration: ConfigurationSnapshot) -> [PassedSocket] {
        let used = configuration.passedNames
        let unused = passed.filter { !used.contains($0.name) }
        passed.removeAll { !used.contains($0.name) }
        for socket in unused { Descriptors.close(socket.descriptor) }
        return unused
    }

    /// The addresses of IPv4 on which passed sockets for both families listen.
    var endpointsOfIPv4: [Endpoint] {
        passed.compactMap { one in
            guard case .listening(let endpoint, isDualStack: true) = one.socket else { return nil }
            return Endpoint(address: .v4(0), port: endpoint.port)
        }
    }

    /// Opens what the configuration requires and is not open yet. Returns one list per worker; a
    /// descriptor of -1 stands for a socket that the worker already has.
    ///
    /// - Parameter again: whether the workers have closed theirs, and get all of them again.
    func open(
        _ configuration: ConfigurationSnapshot, again: Bool = false
    ) throws(ListenError) -> [[ListenerSocket]] {
        isAgain = again
        defer { isAgain = false }
        var perWorker = [[ListenerSocket]](repeating: [], count: workers)
        var now: [Bound] = []
        var opened: [Int32] = []
        unix.begin()
        let labels = routes.listenerIndexes(configuration.listeners.map(\.name))
        do throws(ListenError) {
            for (listener, label) in zip(configuration.listeners, labels) {
                var socket = ListenerSocket(
                    name: listener.name, endpoint: listener.address, role: Self.role(listener),
                    label: label, descriptor: -1)
                socket.speaks = listener.kind.clientProtocol
                if let path = listener.unix {
                    try unix.open(socket, at: path, on: workers, again: again, &perWorker)
                } else {
                    try open(socket, listener.passed, on: workers, &perWorker, &now, &opened)
                }
                if case .transparent(.tproxy) = socket.speaks {
                    try makeTransparent(listener, perWorker, now)
                }
            }
            var admin = ListenerSocket(
                name: Self.adminName, endpoint: .unnamed, role: .admin, label: .other,
                descriptor: -1)
            switch configuration.admin.address {
            case .network(let endpoint):
                admin.endpoint = endpoint
                try open(admin, configuration.admin.passed, on: 1, &perWorker, &now, &opened)
            case .unix(let path):
                try unix.open(admin, at: path, on: 1, again: again, &perWorker)
            }
        } catch {
            for descriptor in opened { Descriptors.close(descriptor) }
            unix.cancel()
            throw error
        }
        let kept = Set(now.flatMap(\.kept).joined())
        for descriptor in bound.flatMap(\.kept).joined() where !kept.contains(descriptor) {
            Descriptors.close(descriptor)
        }
        bound = now
        unix.commit()
        return perWorker
    }

    // MARK: Addresses of the network

    /// Lets the sockets of a listener accept connections to other addresses. They stay so, in the
    /// hands of a successor as well.
    private func makeTransparent(
        _ listener: ListenerConfiguration, _ perWorker: [[ListenerSocket]], _ now: [Bound]
    ) throws(ListenError) {
        let opened = perWorker.joined().filter { $0.name == listener.name && !$0.isAdmin }
        let kept = now.filter { $0.name == listener.name && !$0.isAdmin }
        let passed = passed.filter { $0.name == listener.passed?.name }
        let descriptors =
            opened.map(\.descriptor).filter { $0 >= 0 } + kept.flatMap(\.kept).joined()
            + passed.map(\.descriptor)
        for descriptor in descriptors {
            do throws(Errno) {
                try Sockets.makeTransparent(descriptor)
            } catch {
                throw ListenError(
                    listener: listener.name, address: .network(listener.address),
                    cause: .transparency(error))
            }
        }
    }

    static func role(_ listener: ListenerConfiguration) -> Ingress.Role {
        var forwarding = listener.forwarding
        forwarding.clientsSpeakTLS = listener.tls != nil
        switch listener.kind {
        case .forward, .socks5: return .forward
        case .transparent: return .transparent
        case .balanced(let set):
            return .balanced(
                BalancedRoute(
                    listener: listener.name, isSecure: set.scheme == .https,
                    forwarding: forwarding))
        case .reverse(let upstream):
            return .reverse(
                ReverseUpstream(
                    upstream, forwarding: forwarding, telling: listener.sendsProxyProtocol))
        }
    }

    private func open(
        _ socket: ListenerSocket, _ address: PassedAddress?, on workers: Int,
        _ perWorker: inout [[ListenerSocket]], _ now: inout [Bound], _ opened: inout [Int32]
    ) throws(ListenError) {
        if let address {
            return try take(socket, address, on: workers, &perWorker, &now, &opened)
        }
        var socket = socket
        let asked = socket.endpoint
        let known = self.known(name: socket.name, asked, isAdmin: socket.isAdmin)
        var next =
            known
            ?? Bound(
                name: socket.name, asked: asked, actual: asked, isAdmin: socket.isAdmin,
                inodes: [], kept: Array(repeating: [], count: self.workers))
        next.name = socket.name
        next.isAdmin = socket.isAdmin
        socket.endpoint = next.actual
        socket.isShared = next.isShared
        do throws(Errno) {
            if known == nil {
                let handed = handed(to: socket)
                opened += handed
                next.isShared = !handed.count.isMultiple(of: workers)
                socket.isShared = next.isShared
                for worker in 0..<workers {
                    for (index, descriptor) in handed.enumerated()
                    where next.isShared || index % workers == worker {
                        var descriptor = descriptor
                        if next.isShared, worker > 0 {
                            descriptor = try Sockets.duplicate(ofListening: descriptor)
                            opened.append(descriptor)
                        }
                        try add(descriptor, &socket, to: worker, &next, &perWorker, &opened)
                    }
                }
                if next.inodes.isEmpty { try checkFree(socket, now) }
            }
            for worker in 0..<workers {
                for descriptor in known?.kept[worker] ?? [] {
                    socket.descriptor = -1
                    if isAgain {
                        socket.descriptor = try Sockets.duplicate(ofListening: descriptor)
                        opened.append(socket.descriptor)
                    }
                    perWorker[worker].append(socket)
                }
                guard next.kept[worker].isEmpty else { continue }
                let descriptor = try Sockets.listen(on: socket.endpoint)
                opened.append(descriptor)
                try add(descriptor, &socket, to: worker, &next, &perWorker, &opened)
            }
        } catch {
            throw ListenError(
                listener: socket.name, address: .network(asked), cause: .network(error))
        }
        now.append(next)
    }

    /// Fails if another process listens on an address. The administration may listen beside a
    /// gateway that drains, which stops then.
    private func checkFree(_ socket: ListenerSocket, _ now: [Bound]) throws(Errno) {
        do throws(Errno) {
            try Sockets.checkFree(socket.endpoint, apartFrom: ours(with: now))
        } catch {
            guard socket.isAdmin, let holders = ListeningSockets.inodes(at: socket.endpoint),
                !holders.isEmpty, DrainingProcess.hold(holders)
            else { throw error }
        }
    }

    /// Whether another process listens on the administration's address as well: a successor of this
    /// one, which drains.
    var hasSuccessorAtAdministration: Bool {
        guard let admin = bound.first(where: \.isAdmin),
            let holders = ListeningSockets.inodes(at: admin.actual)
        else { return false }
        return !holders.isSubset(of: admin.inodes)
    }

    /// Gives a worker a socket that is open.
    private func add(
        _ descriptor: Int32, _ socket: inout ListenerSocket, to worker: Int,
        _ bound: inout Bound, _ perWorker: inout [[ListenerSocket]], _ opened: inout [Int32]
    ) throws(Errno) {
        let copy = try Sockets.duplicate(ofListening: descriptor)
        opened.append(copy)
        bound.kept[worker].append(copy)
        if let inode = ListeningSockets.inode(of: descriptor) { bound.inodes.insert(inode) }
        bound.actual = Sockets.localEndpoint(descriptor) ?? bound.actual
        socket.endpoint = bound.actual
        socket.descriptor = descriptor
        perWorker[worker].append(socket)
    }

    /// The predecessor's sockets for a listener, or for another one at the same address.
    private func handed(to socket: ListenerSocket) -> [Int32] {
        guard let predecessor else { return [] }
        let asked = socket.endpoint
        return predecessor.takeSockets { handed in
            handed.address == "\(asked)"
                && (asked.port != 0
                    || (handed.name == socket.name && handed.isAdmin == socket.isAdmin))
        }.map(\.descriptor)
    }

    /// Takes over the passed sockets of an address, one set for each endpoint.
    private func take(
        _ socket: ListenerSocket, _ address: PassedAddress, on workers: Int,
        _ perWorker: inout [[ListenerSocket]], _ now: inout [Bound], _ opened: inout [Int32]
    ) throws(ListenError) {
        let places: [(Endpoint, path: String?)] =
            address.endpoints.map { ($0, nil) } + address.unixPaths.map { (.unnamed, $0) }
        for (endpoint, path) in places {
            let sources = passed.filter {
                $0.name == address.name
                    && (path == nil ? $0.endpoint == endpoint : $0.unixPath == path)
            }
            var socket = socket
            socket.endpoint = endpoint
            socket.path = path
            socket.passedAs = address.name
            socket.isShared = !sources.count.isMultiple(of: workers)
            let isKnown = bound.contains {
                $0.passedAs == address.name && $0.actual == endpoint && $0.path == path
                    && $0.isAdmin == socket.isAdmin
            }
            for worker in 0..<workers {
                for (index, source) in sources.enumerated()
                where socket.isShared || index % workers == worker {
                    socket.descriptor = -1
                    if !isKnown || isAgain {
                        do throws(Errno) {
                            socket.descriptor = try Sockets.duplicate(
                                ofListening: source.descriptor)
                        } catch {
                            throw ListenError(
                                listener: socket.name,
                                address: path.map { .unix(UnixSocketPath(path: $0)) }
                                    ?? .network(endpoint),
                                cause: .network(error))
                        }
                        opened.append(socket.descriptor)
                    }
                    perWorker[worker].append(socket)
                }
            }
            let inodes = sources.compactMap { ListeningSockets.inode(of: $0.descriptor) }
            now.append(
                Bound(
                    name: socket.name, asked: endpoint, actual: endpoint, isAdmin: socket.isAdmin,
                    inodes: Set(inodes), passedAs: address.name, path: path))
        }
    }

    /// The inode numbers of our sockets: a listener that moves from one address of its port to all
    /// of them conflicts only with itself.
    private func ours(with now: [Bound]) -> Set<UInt64> {
        let handed = predecessor?.opened.compactMap { ListeningSockets.inode(of: $0.descriptor) }
        return (bound + now).reduce(into: Set(handed ?? [])) { $0.formUnion($1.inodes) }
    }

    /// The open socket for the listener, or for another one at the same address. Ports chosen by
    /// the system differ although they were configured alike: for those the name decides, which a
    /// listener may share with the administration.
    private func known(name: String, _ asked: Endpoint, isAdmin: Bool) -> Bound? {
        bound.first {
            $0.passedAs == nil && $0.asked == asked
                && (asked.port != 0 || ($0.name == name && $0.isAdmin == isAdmin))
        }
    }
}
