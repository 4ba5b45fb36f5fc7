import HTTPCore

/// Those who wait, each client's in the order in which they came; the clients take turns. So one
/// that waits for a hundred things delays another's one thing by one turn.
struct TurnQueue<Element> {
    fileprivate struct Waiting {
        let ticket: UInt64
        let element: Element
    }

    private var lists: [IPNetwork?: [Waiting]] = [:]
    /// The clients that wait, in the order of their turns.
    private var turns: [IPNetwork?] = []
    private(set) var count = 0

    init() {}

    /// - Parameter ticket: by which it may leave.
    mutating func append(_ element: Element, ticket: UInt64, of client: IPNetwork?) {
        if lists[client] == nil { turns.append(client) }
        lists[client, default: []].append(Waiting(ticket: ticket, element: element))
        count += 1
    }

    /// Removes whose turn it is.
    mutating func popFirst() -> (element: Element, ticket: UInt64, client: IPNetwork?)? {
        guard let client = turns.first, var list = lists[client], !list.isEmpty else { return nil }
        let next = list.removeFirst()
        turns.removeFirst()
        if list.isEmpty {
            lists[client] = nil
        } else {
            lists[client] = list
            turns.append(client)
        }
        count -= 1
        return (next.element, next.ticket, client)
    }

    /// Removes one that waits no longer. Returns false if it does not wait.
    mutating func remove(ticket: UInt64, of client: IPNetwork?) -> Bool {
        guard var list = lists[client],
            let index = list.firstIndex(where: { $0.ticket == ticket })
        else { return false }
        list.remove(at: index)
        lists[client] = list.isEmpty ? nil : list
        if list.isEmpty { turns.removeAll { $0 == client } }
        count -= 1
        return true
    }

    /// Whose turn it is.
    var first: Element? { turns.first.flatMap { lists[$0]?.first?.element } }
}

extension TurnQueue: Sendable where Element: Sendable {}
extension TurnQueue.Waiting: Sendable where Element: Sendable {}
