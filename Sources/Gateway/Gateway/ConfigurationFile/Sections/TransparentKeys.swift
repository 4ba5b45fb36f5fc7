import HTTPCore
import PinfoldConfiguration

/// `transparent` and `serverFirst` of a listener. For listeners of another kind they are neither
/// read nor printed.
extension ListenerConfiguration {
    static var transparentKeys: [ConfigurationKey<Self>] {
        [
            ConfigurationKey(
                "transparent", byDefault: OriginalAddressSource.redirect.rawValue,
                read: { _, field, listener in
                    guard let field, var options = listener.transparency else { return }
                    let source: OriginalAddressSource? = field.choice()
                    if let source { options.source = source }
                    listener.kind = .transparent(options)
                },
                text: { $0.transparency?.source.rawValue }),
            ConfigurationKey(
                "serverFirst", byDefault: "[]",
                read: { _, field, listener in
                    guard let field, var options = listener.transparency else { return }
                    let ports = field.boundedList(of: "ports") ?? []
                    options.serverFirst = ports.compactMap {
                        $0.integer(in: 1...65535).map { UInt16($0) }
                    }
                    listener.kind = .transparent(options)
                },
                text: { listener in
                    listener.transparency.map {
                        "[\($0.serverFirst.map(\.description).joined(separator: ", "))]"
                    }
                }),
        ]
    }

    /// What a transparent listener does; `nil` for others.
    private var transparency: TransparentConfiguration? {
        if case .transparent(let options) = kind { options } else { nil }
    }
}

extension SnapshotReader {
    /// Warns of ports at which servers speak first, if no tunnel to them is allowed.
    func warnOfClosedPorts(_ listeners: Field?, _ snapshot: ConfigurationSnapshot) {
        let elements = listeners?.elements ?? []
        guard elements.count == snapshot.listeners.count else { return }
        for (element, listener) in zip(elements, snapshot.listeners) {
            guard case .transparent(let options) = listener.kind else { continue }
            let closed = options.serverFirst.filter { !snapshot.access.connectPorts.contains($0) }
            guard !closed.isEmpty else { continue }
            element.key("serverFirst")?.warn(
                "refuses connections to \(closed.map(\.description).joined(separator: ", ")): "
                    + "access.connectPorts does not have \(closed.count == 1 ? "it" : "them")")
        }
    }
}
