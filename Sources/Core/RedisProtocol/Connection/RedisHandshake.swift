/// The beginning of a connection: one command after the other, each when the one before it has been
/// replied to.
///
///     hello ─┬──────────────────────► select ─► ready
///            └► (RESP2) auth ─► name ─► select ─► role ─► ready
///
/// Steps that are not needed are passed over. `HELLO` does at once what the lower way does one by
/// one; a server that does not know it, or refuses version 3, is older than Redis 6 or a proxy.
package struct RedisHandshake: Sendable, Hashable {
    /// What is being replied to.
    package enum Step: Sendable, Hashable, CaseIterable {
        case hello
        case auth
        case name
        case select
        case role

        /// The command's name.
        package var command: String {
            switch self {
            case .hello: "HELLO"
            case .auth: "AUTH"
            case .name: "CLIENT SETNAME"
            case .select: "SELECT"
            case .role: "ROLE"
            }
        }
    }

    /// What follows from a reply.
    package enum Action: Sendable, Hashable {
        case send(RedisCommand)
        case ready(RedisServer)
        case failed(RedisHandshakeError)
    }

    private let session: RedisSession
    private var server = RedisServer()
    /// What is being replied to; `nil` before the first command and after the end.
    package private(set) var step: Step?

    /// A handshake that has not begun.
    package init(_ session: RedisSession) { self.session = session }

    /// Begins. Returns the first command.
    package mutating func begin() -> RedisCommand {
        step = .hello
        return command(of: .hello)
    }

    /// Takes the reply to the last command.
    package mutating func receive(_ reply: RESPValue) -> Action {
        guard let step else { return fail(.unexpectedReply(.hello)) }
        if case .error(let text) = reply { return refused(step, RedisReplyError(text)) }
        switch step {
        case .hello: return greeted(reply)
        case .auth, .name, .select:
            return reply.isOK ? next(after: step) : fail(.unexpectedReply(step))
        case .role:
            guard let role = RedisRole(reply) else { return fail(.unexpectedReply(.role)) }
            server.role = role
            return next(after: .role)
        }
    }

    private mutating func greeted(_ reply: RESPValue) -> Action {
        guard reply.value(of: "proto")?.integer == 3 else { return fail(.unexpectedReply(.hello)) }
        server.protocolVersion = 3
        server.product = reply.value(of: "server")?.text ?? ""
        server.version = reply.value(of: "version")?.text ?? ""
        server.role = reply.value(of: "role")?.text.flatMap { RedisRole(word: $0) }
        switch reply.value(of: "mode")?.text {
        case "cluster": server.isClustered = true
        case "sentinel": server.role = .sentinel
        default: break
        }
        return next(after: .hello)
    }

    /// The server replied an error.
    private mutating func refused(_ step: Step, _ error: RedisReplyError) -> Action {
        switch error.code {
        case .noProtocol, .unknownCommand:
            guard step == .hello else { break }
            server.protocolVersion = 2
            return go(to: .auth)
        case .wrongPassword: return fail(.wrongPassword)
        case .noAuthentication: return fail(.passwordRequired)
        case .noPermission:
            // The name is for those who read CLIENT LIST, and whoever may not ask for the role is
            // told by the first write that it is a replica.
            if step == .name || step == .role { return next(after: step) }
            return fail(.notPermitted(step, error))
        case .loading, .busy, .masterDown, .clusterDown, .tryAgain: return fail(.unavailable(error))
        case .moved, .ask, .crossSlot, .readOnly, .outOfMemory, .notPersisting, .noReplicas,
            .noScript, .wrongType, .other:
            break
        }
        // Before Redis 2.6.9 and 2.8.12.
        if step == .name || step == .role, error.code == .unknownCommand {
            return next(after: step)
        }
        return fail(.refused(step, error))
    }

    private mutating func next(after step: Step) -> Action {
        switch step {
        case .hello: go(to: .select)
        case .auth: go(to: .name)
        case .name: go(to: .select)
        case .select: go(to: .role)
        case .role: finish()
        }
    }

    /// Sends the command of a step if it is needed, or goes on to the next one.
    private mutating func go(to step: Step) -> Action {
        let isNeeded =
            switch step {
            case .hello: true
            case .auth: session.password != nil
            case .name: !session.clientName.isEmpty
            case .select: session.database != 0
            case .role: session.needsMaster && server.role == nil
            }
        guard isNeeded else { return next(after: step) }
        self.step = step
        return .send(command(of: step))
    }

    private mutating func finish() -> Action {
        switch server.role {
        case .sentinel: return fail(.isSentinel)
        case .replica where session.needsMaster: return fail(.isReplica)
        case .replica, .master, nil: break
        }
        step = nil
        return .ready(server)
    }

    private mutating func fail(_ error: RedisHandshakeError) -> Action {
        step = nil
        return .failed(error)
    }

    private func command(of step: Step) -> RedisCommand {
        switch step {
        case .hello:
            var command = RedisCommand("HELLO", "3")
            if let password = session.password {
                let user = session.user ?? Array("default".utf8)
                command.arguments += [Array("AUTH".utf8), user, password]
            }
            if !session.clientName.isEmpty {
                command.arguments += [Array("SETNAME".utf8), session.clientName]
            }
            return command
        case .auth:
            let names = session.user.map { [$0] } ?? []
            return RedisCommand([Array("AUTH".utf8)] + names + [session.password ?? []])
        case .name:
            return RedisCommand(
                [Array("CLIENT".utf8), Array("SETNAME".utf8), session.clientName])
        case .select: return RedisCommand("SELECT", String(session.database))
        case .role: return RedisCommand("ROLE")
        }
    }
}
