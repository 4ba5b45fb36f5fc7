import HTTPCore
import PinfoldEngine

/// A worker's idle client connections, in the order in which they became idle: of all clients, and
/// of each.
///
/// A connection keeps its position while it is used and gets its true one when it is examined
/// (`IdleOrder`): an exchange pays for one comparison.
struct IdleClients {
    private var all = IdleOrder<IdleAdmittedConnection>()
    private var clients: [ObjectIdentifier: ClientShare] = [:]
    /// The clients by the number of their connections here.
    private var accountsBySize = ShareTable<ObjectIdentifier, ClientAccount>(limit: .max)
    /// How often a connection has become idle.
    private var moment: Int64 = 0

    /// The time at which a connection becomes idle: a count, since the clock's milliseconds are too
    /// coarse to order two connections.
    mutating func nextMoment() -> Int64 {
        moment &+= 1
        return moment
    }

    /// Called when a connection of a client was accepted.
    mutating func joined(_ connection: any AdmittedConnection, of account: ClientAccount) {
        let key = ObjectIdentifier(account)
        let share = clients[key] ?? ClientShare(account)
        if share.connections == 0 {
            clients[key] = share
            accountsBySize.insert(account, for: key, of: account.network)
        }
        share.connections += 1
        accountsBySize.setWeight(share.connections, of: key)
        connection.share = ClientShareMember(connection, share)
    }

    /// Called when a connection is gone, or is no longer an HTTP client's.
    mutating func removed(_ connection: any AdmittedConnection) {
        guard let member = connection.share else { return }
        all.closed(IdleAdmittedConnection(member: member))
        member.share.idle.closed(member)
        member.share.connections -= 1
        let key = ObjectIdentifier(member.share.account)
        if member.share.connections > 0 {
            accountsBySize.setWeight(member.share.connections, of: key)
        } else {
            accountsBySize.remove(key)
            clients[key] = nil
            // It keeps some entries of closed connections, and they refer to it.
            member.share.idle = IdleOrder()
        }
        connection.share = nil
    }

    /// A connection goes on as another object, which gets its places in the orders: they keep
    /// nothing of the first one.
    mutating func continues(
        _ connection: any AdmittedConnection, as successor: any AdmittedConnection
    ) {
        guard let member = connection.share else { return }
        connection.share = nil
        member.connection = successor
        successor.share = member
        successor.idleSince = connection.idleSince
        successor.queuedAt = connection.queuedAt
        successor.isInIdleOrder = connection.isInIdleOrder
    }

    /// Adds a connection that has become idle to the orders in which it is missing.
    mutating func insert(_ connection: any AdmittedConnection) {
        guard let member = connection.share else { return }
        all.becameIdle(
            IdleAdmittedConnection(member: member), at: connection.idleSince)
        member.share.idle.becameIdle(member, at: connection.idleSince)
        connection.isInIdleOrder = true
    }

    /// The connection that has been idle the longest: of a client, or of all.
    mutating func longestIdle(of client: ClientAccount?) -> (any AdmittedConnection)? {
        guard let client else { return all.longestIdle()?.connection }
        return clients[ObjectIdentifier(client)]?.idle.longestIdle()?.connection
    }

    /// The client that has the most connections here.
    var largest: ClientAccount? { accountsBySize.next() }

    /// The clients that have connections here.
    var accounts: [ClientAccount] { clients.values.map(\.account) }
}

/// One client's connections on one worker.
final class ClientShare {
    let account: ClientAccount
    fileprivate var connections = 0
    fileprivate var idle = IdleOrder<ClientShareMember>()

    fileprivate init(_ account: ClientAccount) { self.account = account }
}

/// A connection as one of its client's: its position among the idle ones of that client.
final class ClientShareMember: IdleOrdered {
    fileprivate(set) var connection: any AdmittedConnection
    fileprivate let share: ClientShare

    /// The connection refers to it until it is closed.
    fileprivate init(_ connection: any AdmittedConnection, _ share: ClientShare) {
        self.connection = connection
        self.share = share
    }

    var isIdle: Bool { connection.isIdle }
    var isClosed: Bool { connection.isClosed }
    var idleSince: Int64 {
        get { connection.idleSince }
        set { connection.idleSince = newValue }
    }
    var queuedAt: Int64? {
        didSet { if queuedAt == nil { connection.isInIdleOrder = false } }
    }
}
