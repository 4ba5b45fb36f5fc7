import CAres
import CLinux
import HTTPCore

/// A question that is under way, with what is needed when the answer arrives.
final class Question {
    let lookup: UInt64
    let name: DomainName
    let family: IPAddress.Family
    /// The failure that one server reported, while another is asked.
    let failure: FamilyOutcome?
    fileprivate let channel: AresChannel

    fileprivate init(
        lookup: UInt64, name: DomainName, family: IPAddress.Family, failure: FamilyOutcome?,
        channel: AresChannel
    ) {
        self.lookup = lookup
        self.name = name
        self.family = family
        self.failure = failure
        self.channel = channel
    }
}

/// Where answers wait until the thread takes them: c-ares invokes callbacks from its own calls, and
/// must not be called again from there.
final class AnswerQueue {
    /// A finished question with its status, and the message if there was one.
    struct Answer {
        var question: Question
        var status: Int32
        var message: [UInt8]?
    }

    /// The finished questions, oldest first.
    var answers: [Answer] = []
}

/// A c-ares channel: sockets to the DNS servers with retransmission, failover, and TCP for
/// truncated answers. Its sockets are in the thread's epoll instance under the channel's number.
/// Confined to one thread; ``close()`` must be called before the last reference goes away.
final class AresChannel {
    /// How to handle an answer that reports a server failure.
    enum ServerFailureHandling {
        /// Deliver the answer: its RCODE is the reason.
        case report
        /// Ask the next server; if all of them fail, c-ares no longer knows why.
        case askNextServer
    }

    /// The channel's number in epoll data.
    let number: UInt32
    /// The number of unfinished questions.
    private(set) var outstanding = 0
    /// Whether there is more than one server to ask.
    private(set) var hasSeveralServers = false

    private let epoll: Int32
    private let queue: AnswerQueue
    private var channel: ares_channel?
    private var watched: Set<Int32> = []

    /// c-ares's process-wide initialization; done once, and never undone.
    private static let libraryStatus = ares_library_init(0)

    init(
        options: ResolverOptions, serverFailureHandling: ServerFailureHandling, number: UInt32,
        epoll: Int32,
        queue: AnswerQueue
    ) throws(Resolver.StartError) {
        self.number = number
        self.epoll = epoll
        self.queue = queue
        var status = AresChannel.libraryStatus
        if status == ARES_SUCCESS {
            status = initialize(options, serverFailureHandling)
        }
        if status == ARES_SUCCESS, case .list(let servers) = options.servers {
            let list = servers.map(\.description).joined(separator: ",")
            status = ares_set_servers_ports_csv(channel, list)
        }
        guard status == ARES_SUCCESS else {
            close()
            throw .dns(status: status)
        }
        var servers: UnsafeMutablePointer<ares_addr_port_node>?
        if ares_get_servers_ports(channel, &servers) == ARES_SUCCESS, let servers {
            hasSeveralServers = servers.pointee.next != nil
            ares_free_data(servers)
        }
    }

    private func initialize(
        _ options: ResolverOptions, _ serverFailureHandling: ServerFailureHandling
    ) -> Int32 {
        var settings = ares_options()
        // Names are complete: no search list, so that a request means the same everywhere.
        settings.flags = ARES_FLAG_NOSEARCH | ARES_FLAG_NOALIASES
        switch serverFailureHandling {
        case .report: settings.flags |= ARES_FLAG_NOCHECKRESP
        case .askNextServer: break
        }
        settings.timeout = options.timeoutMilliseconds
        settings.tries = options.tries
        // In host byte order, unlike all other network values in C.
        settings.udp_port = options.filePort
        settings.tcp_port = options.filePort
        settings.sock_state_cb = { channel, descriptor, readable, writable in
            guard let channel else { return }
            Unmanaged<AresChannel>.fromOpaque(channel).takeUnretainedValue()
                .watch(descriptor, readable: readable != 0, writable: writable != 0)
        }
        settings.sock_state_cb_data = Unmanaged.passUnretained(self).toOpaque()
        let mask =
            ARES_OPT_FLAGS | ARES_OPT_TIMEOUTMS | ARES_OPT_TRIES | ARES_OPT_SOCK_STATE_CB
            | ARES_OPT_RESOLVCONF | ARES_OPT_UDP_PORT | ARES_OPT_TCP_PORT
        let path =
            switch options.servers {
            case .file(let path): path
            case .list: "/dev/null"
            }
        guard let copy = strdup(path) else { return ARES_ENOMEM }
        defer { free(copy) }
        settings.resolvconf_path = copy
        return ares_init_options(&channel, &settings, mask)
    }

    /// Sends a question to the servers; its answer arrives in the queue, possibly at once.
    func ask(
        _ name: DomainName, family: IPAddress.Family, lookup: UInt64,
        failure: FamilyOutcome? = nil
    ) {
        let question = Question(
            lookup: lookup, name: name, family: family, failure: failure, channel: self)
        outstanding += 1
        let type = Int32(DNSMessage.type(of: family))
        let classInternet: Int32 = 1
        ares_query(
            channel, name.text, classInternet, type,
            { argument, status, _, bytes, count in
                guard let argument else { return }
                let question = Unmanaged<Question>.fromOpaque(argument).takeRetainedValue()
                var message: [UInt8]?
                if let bytes, count > 0 {
                    message = [UInt8](UnsafeBufferPointer(start: bytes, count: Int(count)))
                }
                question.channel.ended(question, status: status, message: message)
            }, Unmanaged.passRetained(question).toOpaque())
    }

    private func ended(_ question: Question, status: Int32, message: [UInt8]?) {
        outstanding -= 1
        queue.answers.append(
            AnswerQueue.Answer(question: question, status: status, message: message))
    }

    /// Reads and writes what a socket is ready for, then handles retransmissions that are due.
    func process(descriptor: Int32, readable: Bool, writable: Bool) {
        let none: Int32 = -1
        ares_process_fd(channel, readable ? descriptor : none, writable ? descriptor : none)
    }

    /// Handles retransmissions that are due.
    func processTimeouts() {
        ares_process_fd(channel, -1, -1)
    }

    /// The time until ``processTimeouts()`` has something to do; `nil` if nothing is outstanding.
    func timeoutMilliseconds() -> Int64? {
        guard outstanding > 0 else { return nil }
        var time = timeval()
        guard ares_timeout(channel, nil, &time) != nil else { return nil }
        // Rounded up: a timeout of a fraction of a millisecond would otherwise spin.
        return Int64(time.tv_sec) * 1000 + (Int64(time.tv_usec) + 999) / 1000
    }

    /// Closes the sockets and ends what is outstanding; those answers are then in the queue.
    func close() {
        guard let channel else { return }
        ares_destroy(channel)
        self.channel = nil
    }

    private func watch(_ descriptor: Int32, readable: Bool, writable: Bool) {
        guard readable || writable else {
            if watched.remove(descriptor) != nil {
                epoll_ctl(epoll, EPOLL_CTL_DEL, descriptor, nil)
            }
            return
        }
        var event = epoll_event()
        if readable { event.events |= EPOLLIN.rawValue }
        if writable { event.events |= EPOLLOUT.rawValue }
        event.data.u64 = UInt64(number) << 32 | UInt64(UInt32(bitPattern: descriptor))
        let isNew = watched.insert(descriptor).inserted
        epoll_ctl(epoll, isNew ? EPOLL_CTL_ADD : EPOLL_CTL_MOD, descriptor, &event)
    }
}

extension AnswerQueue.Answer {
    /// The question's outcome. The message, if there is one, is more specific than c-ares's status.
    var outcome: FamilyOutcome {
        if let message {
            return DNSMessage(message).outcome(name: question.name, family: question.family)
        }
        // One server's answer is more useful than the silence of the others.
        if let failure = question.failure { return failure }
        switch status {
        case ARES_ETIMEOUT: return .failed(.timeout)
        case ARES_ECONNREFUSED: return .failed(.unreachable)
        case ARES_ECANCELLED, ARES_EDESTRUCTION: return .failed(.cancelled)
        case ARES_EBADNAME: return .failed(.badName)
        case ARES_EBADRESP: return .failed(.badResponse)
        default: return .failed(.serverFailure)
        }
    }
}
