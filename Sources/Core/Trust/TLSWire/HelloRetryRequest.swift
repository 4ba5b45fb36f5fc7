/// What a server asks a client to change in its ClientHello (RFC 8446 §4.1.4).
struct HelloRetryRequest: Hashable {
    /// The cipher suite that it has chosen.
    let suite: UInt16
    /// The group for which it wants a key share; `nil` if the client's key shares stay as they are.
    let group: UInt16?
    /// The cookie that it wants to be sent back, as in the extension; `nil` if none.
    let cookie: ArraySlice<UInt8>?

    private static let extensions: Set<UInt16> = [
        ExtensionType.supportedVersions, ExtensionType.keyShare, ExtensionType.cookie,
    ]

    /// - Parameter server: the HelloRetryRequest.
    /// - Throws: if a client must abort the handshake because of it.
    init(_ server: ServerHello, answering hello: ClientHello) throws(TLSWireError) {
        for entry in server.extensions.entries where !Self.extensions.contains(entry.type) {
            throw .notOffered("an extension of the HelloRetryRequest")
        }
        suite = server.suite
        if let content = server.extensions[ExtensionType.keyShare] {
            var reader = WireReader(content, "the group of the HelloRetryRequest")
            let group = try reader.short()
            try reader.end()
            // Asking for a group of which the client has sent a key share would change nothing.
            guard try hello.groups().contains(group), try !hello.keyShareGroups().contains(group)
            else { throw .notOffered("the group") }
            self.group = group
        } else {
            group = nil
        }
        cookie = server.extensions[ExtensionType.cookie]
        if let cookie {
            let what: StaticText = "the cookie"
            var reader = WireReader(cookie, what)
            guard try !reader.vector(lengthBytes: 2).isEmpty else { throw .malformed(what) }
            try reader.end()
        }
        guard group != nil || cookie != nil else {
            throw .unexpected("a HelloRetryRequest that asks for no change")
        }
    }
}

extension ClientHello {
    /// The groups for which the client can send key shares; empty if it does not list them.
    fileprivate func groups() throws(TLSWireError) -> [UInt16] {
        guard let content = extensions[ExtensionType.supportedGroups] else { return [] }
        var reader = WireReader(content, "the groups of the ClientHello")
        let groups = try reader.shorts(lengthBytes: 2)
        try reader.end()
        return groups
    }

    /// The groups of the client's key shares, in order.
    fileprivate func keyShareGroups() throws(TLSWireError) -> [UInt16] {
        guard let content = extensions[ExtensionType.keyShare] else { return [] }
        let what: StaticText = "the key shares of the ClientHello"
        var reader = WireReader(content, what)
        var shares = WireReader(try reader.vector(lengthBytes: 2), what)
        try reader.end()
        var groups: [UInt16] = []
        while !shares.isAtEnd {
            groups.append(try shares.short())
            guard try !shares.vector(lengthBytes: 2).isEmpty else { throw .malformed(what) }
        }
        return groups
    }
}

// MARK: - The second ClientHello

extension ClientHello {
    /// Extensions that may be added, removed or changed after a HelloRetryRequest.
    private static let changeable: Set<UInt16> = [
        ExtensionType.cookie, ExtensionType.earlyData, ExtensionType.padding,
        ExtensionType.preSharedKey,
    ]

    /// Checks that a client's second ClientHello equals this one, except for the changes that RFC
    /// 8446 §4.1.2 allows, and the one of RFC 9849 §6.1.5 if the server cannot read an encrypted
    /// ClientHello: what it cannot read does not change what it is asked for.
    ///
    /// - Parameter readsEncryptedHello: whether the server may be able to read one.
    /// - Throws: `changed` for the first difference, with the server name before all others;
    ///   `malformed` for an extension with exceptions whose structure is invalid.
    func requireSame(
        in second: ClientHello, for request: HelloRetryRequest, readsEncryptedHello: Bool
    ) throws(TLSWireError) {
        guard second.serverName == serverName else { throw .changedName }
        guard second.legacyVersion == legacyVersion else { throw .changed("the version") }
        guard second.random == random else { throw .changed("the random") }
        guard second.sessionID == sessionID else { throw .changed("the session") }
        guard second.suites == suites else { throw .changed("the cipher suites") }
        guard second.compression == compression else { throw .changed("the compression") }
        let (before, after) = (unchangeable, second.unchangeable)
        guard before.map(\.type) == after.map(\.type) else {
            throw .changed("the list of extensions")
        }
        for (one, other) in zip(before, after) where one.content != other.content {
            switch one.type {
            case ExtensionType.keyShare where request.group != nil: continue
            case ExtensionType.encryptedClientHello
            where !readsEncryptedHello && Self.isReencryption(other.content, after: one.content):
                continue
            default: throw .changed(Self.text(of: one.type))
            }
        }
        if let group = request.group, try second.keyShareGroups() != [group] {
            throw .changed("the key shares, which are not the one requested")
        }
        try requireChanges(in: second, for: request)
        try requireSamePreSharedKeys(in: second)
    }

    private var unchangeable: [HelloExtensions.Entry] {
        extensions.entries.filter { !Self.changeable.contains($0.type) }
    }

    /// Whether an extension is the same client's encryption of its second ClientHello: with the
    /// same cipher suite and configuration, and without the key that the first one contained (RFC
    /// 9849 §6.1.5).
    private static func isReencryption(
        _ second: ArraySlice<UInt8>, after first: ArraySlice<UInt8>
    ) -> Bool {
        guard let before = OuterEncryptedHello(first), let after = OuterEncryptedHello(second)
        else { return false }
        return after.suite == before.suite && after.configuration == before.configuration
            && !before.key.isEmpty && after.key.isEmpty
    }

    private static func text(of type: UInt16) -> StaticText {
        switch type {
        case ExtensionType.serverName: "the server name"
        case ExtensionType.applicationProtocols: "the protocols (ALPN)"
        case ExtensionType.supportedGroups: "the groups"
        case ExtensionType.supportedVersions: "the versions"
        case ExtensionType.keyShare: "the keys"
        case ExtensionType.sessionTicket: "the session ticket"
        case ExtensionType.encryptedClientHello: "the encrypted ClientHello"
        default: "an extension"
        }
    }

    /// Checks early data, cookie and padding.
    private func requireChanges(
        in second: ClientHello, for request: HelloRetryRequest
    ) throws(TLSWireError) {
        guard !second.offersEarlyData else {
            throw .changed("early data, which must no longer be announced")
        }
        guard
            second.extensions[ExtensionType.cookie]
                == request.cookie ?? extensions[ExtensionType.cookie]
        else { throw .changed("the cookie") }
        // RFC 7685 §3.
        guard second.extensions[ExtensionType.padding]?.allSatisfy({ $0 == 0 }) ?? true else {
            throw .changed("the padding, to invalid padding")
        }
    }

    /// Pre-shared keys may be removed; their ages and binders are recomputed.
    private func requireSamePreSharedKeys(in second: ClientHello) throws(TLSWireError) {
        guard let after = second.extensions[ExtensionType.preSharedKey] else { return }
        guard let before = extensions[ExtensionType.preSharedKey] else {
            throw .changed("the pre-shared keys")
        }
        // RFC 8446 §4.2.11.
        guard second.extensions.entries.last?.type == ExtensionType.preSharedKey else {
            throw .malformed("pre-shared keys that are not the last extension")
        }
        var old = try Self.preSharedKeys(before)[...]
        for key in try Self.preSharedKeys(after) {
            guard let index = old.firstIndex(of: key) else {
                throw .changed("the pre-shared keys")
            }
            old = old[(index + 1)...]
        }
    }

    /// The identities of the pre-shared keys (RFC 8446 §4.2.11), each of which has a binder.
    private static func preSharedKeys(
        _ content: ArraySlice<UInt8>
    ) throws(TLSWireError) -> [ArraySlice<UInt8>] {
        let what: StaticText = "the pre-shared keys of the ClientHello"
        var reader = WireReader(content, what)
        var identities = WireReader(try reader.vector(lengthBytes: 2), what)
        var binders = WireReader(try reader.vector(lengthBytes: 2), what)
        try reader.end()
        var found: [ArraySlice<UInt8>] = []
        while !identities.isAtEnd {
            found.append(try identities.vector(lengthBytes: 2))
            _ = try identities.take(4)
            guard try binders.vector(lengthBytes: 1).count >= 32 else { throw .malformed(what) }
        }
        try binders.end()
        guard !found.isEmpty, found.allSatisfy({ !$0.isEmpty }) else { throw .malformed(what) }
        return found
    }
}

extension TLSWireError {
    /// The second ClientHello names a different server than the first.
    package static var changedName: Self { .changed("the server name") }
}
