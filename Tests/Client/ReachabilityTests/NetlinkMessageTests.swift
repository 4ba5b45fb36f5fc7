import Testing

@testable import PinfoldClient

@Suite("Messages of netlink")
struct NetlinkMessageTests {
    private static func message(
        _ type: UInt16, _ content: [UInt8], length: UInt32? = nil
    ) -> [UInt8] {
        let head = (length ?? UInt32(content.count + 16)).bytes + type.bytes
        return head + [UInt8](repeating: 0, count: 10) + content
    }

    private static func attribute(
        _ kind: UInt16, _ value: [UInt8], length: UInt16? = nil
    ) -> [UInt8] {
        let padding = [UInt8](repeating: 0, count: (4 - value.count % 4) % 4)
        return (length ?? UInt16(value.count + 4)).bytes + kind.bytes + value + padding
    }

    private static func link(_ name: String, flags: UInt32 = 0x41) -> [UInt8] {
        [0, 0] + UInt16(1).bytes + Int32(7).bytes + flags.bytes + UInt32(0).bytes
            + attribute(99, [1, 2, 3]) + attribute(3, Array(name.utf8) + [0])
    }

    private static func route(_ type: UInt8, _ attributes: [UInt8] = []) -> [UInt8] {
        [2, 32, 0, 0, 254, 0, 0, type, 0, 0, 0, 0] + attributes
    }

    private static let eth0 = NetlinkMessage.Link(
        index: 7, hardwareType: 1, flags: 0x41, name: "eth0")

    @Test(
        arguments: [
            ([], []),
            (message(16, link("eth0")), [.link(eth0)]),
            (message(17, link("eth0")), [.linkGone(index: 7)]),
            (message(20, []), [.address]), (message(21, [1]), [.address]),
            (message(24, route(1)), [.route(NetlinkMessage.Route(type: 1))]),
            (
                message(24, route(1, attribute(1, [127, 0, 0, 1]) + attribute(4, Int32(7).bytes))),
                [.route(NetlinkMessage.Route(type: 1, interface: 7))]
            ),
            // A number that is too short is ignored.
            (
                message(24, route(7, attribute(4, [7, 0]))),
                [.route(NetlinkMessage.Route(type: 7))]
            ),
            (message(25, []), [.routeGone]), (message(2, Int32(-101).bytes), [.error(101)]),
            (message(2, Int32(0).bytes), [.error(0)]), (message(3, []), [.done]),
            (message(4, []), [.overrun]), (message(99, [1]), [.other(type: 99)]),
            // The second one begins at a multiple of four.
            (message(99, [1]) + [0, 0, 0] + message(3, []), [.other(type: 99), .done]),
        ] as [([UInt8], [NetlinkMessage])])
    func `are read from a datagram`(bytes: [UInt8], messages: [NetlinkMessage]) throws {
        #expect(try NetlinkMessage.parse(bytes) == messages)
    }

    @Test(
        arguments: [
            [1], message(3, [], length: 15), message(3, [], length: 17), message(3, []) + [0],
            message(3, [], length: .max), message(2, [1, 2, 3]), message(2, Int32.min.bytes),
            message(16, [UInt8](repeating: 0, count: 15)), message(24, [1]),
            message(24, route(1, [4, 0, 4])), message(24, route(1, attribute(4, [], length: 3))),
            message(24, route(1, attribute(4, [], length: 5))),
            message(16, link("x") + attribute(3, [], length: .max)),
        ] as [[UInt8]])
    func `are rejected if they are truncated or have a wrong length`(bytes: [UInt8]) {
        #expect(throws: NetlinkError.malformed) { try NetlinkMessage.parse(bytes) }
    }

    @Test func `truncated anywhere are an error, or the complete ones before`() throws {
        let bytes = Self.message(16, Self.link("eth0")) + Self.message(24, Self.route(1))
        let all = try NetlinkMessage.parse(bytes)
        #expect(all.count == 2)
        for count in 0..<bytes.count {
            let found = try? NetlinkMessage.parse(Array(bytes[..<count]))
            let isWhole = count == 0 || count == Self.message(16, Self.link("eth0")).count
            #expect((found != nil) == isWhole)
            #expect(found.map { all.starts(with: $0) } ?? true)
        }
    }

    @Test func `of any bytes are either parsed or the typed error`() {
        var generator = SystemRandomNumberGenerator()
        let whole = Self.message(16, Self.link("eth0")) + Self.message(24, Self.route(1))
        for _ in 0..<5000 {
            var bytes = whole
            for _ in 0..<Int.random(in: 1...4, using: &generator) {
                let index = Int.random(in: 0..<bytes.count, using: &generator)
                bytes[index] = UInt8.random(in: 0...255, using: &generator)
            }
            do {
                #expect(try NetlinkMessage.parse(bytes).count <= bytes.count / 16)
            } catch {
                #expect(error == .malformed)
            }
        }
    }

    @Test func `show whether a link and a route can be used`() {
        for (flags, isRunning) in [(0x41, true), (0x1, false), (0x40, false), (0, false)] {
            var link = Self.eth0
            link.flags = UInt32(flags)
            #expect(link.isRunning == isRunning)
        }
        for type in UInt8(0)...11 {
            #expect(NetlinkMessage.Route(type: type).isUsable == (1...5).contains(type))
        }
    }

    @Test func `request in the format of rtnetlink`() {
        #expect(
            NetlinkRequest.route(to: [127, 0, 0, 1], sequence: 9)
                == UInt32(36).bytes + UInt16(26).bytes + UInt16(1).bytes + UInt32(9).bytes
                + [0, 0, 0, 0, 2, 32, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]
                + UInt16(8).bytes + UInt16(1).bytes + [127, 0, 0, 1])
        #expect(
            NetlinkRequest.route(to: [UInt8](repeating: 0, count: 16), sequence: 1).count == 48)
        #expect(NetlinkRequest.link(7, sequence: 1).count == 32)
    }
}

@Suite("The status of a network")
struct NetworkStatusTests {
    @Test(
        arguments: [
            (772, nil, "lo", .loopback), (1, nil, "eth0", .ethernet), (1, nil, "veth1", .ethernet),
            (1, "bridge", "br0", .ethernet), (1, "wlan", "eth1", .wifi),
            (1, nil, "wlp3s0", .wifi), (1, nil, "wlan0", .wifi), (803, nil, "mon0", .wifi),
            (1, "wwan", "eth2", .cellular), (1, nil, "wwp0s1", .cellular),
            (65_534, nil, "wwan0", .cellular), (519, nil, "rmnet0", .cellular),
            (65_534, nil, "tun0", .other), (512, nil, "ppp0", .other),
        ] as [(UInt16, String?, String, InterfaceKind)])
    func `has the kind of the interface`(
        hardwareType: UInt16, deviceType: String?, name: String, kind: InterfaceKind
    ) {
        #expect(
            InterfaceKind(hardwareType: hardwareType, deviceType: deviceType, name: name) == kind)
    }

    @Test func `finds the type of a device`() {
        let text = "DEVTYPE=wlan\nINTERFACE=wlan0\nIFINDEX=3\n"
        #expect(InterfaceKind.deviceType(uevent: text) == "wlan")
        #expect(InterfaceKind.deviceType(uevent: "INTERFACE=eth0\nIFINDEX=3\n") == nil)
    }

    @Test func `has AFNetworking's numbers`() {
        #expect(NetworkStatus.unknown.code == -1 && NetworkStatus.notReachable.code == 0)
        for kind in InterfaceKind.allCases {
            #expect(NetworkStatus.reachable(kind).code == (kind == .cellular ? 1 : 2))
            #expect(NetworkStatus.reachable(kind).isReachable)
        }
        #expect(!NetworkStatus.unknown.isReachable && !NetworkStatus.notReachable.isReachable)
    }

    @Test func `is the best of a host's addresses`() {
        #expect(NetworkStatus.best(of: []) == .unknown)
        #expect(NetworkStatus.best(of: [.notReachable, .unknown]) == .notReachable)
        #expect(
            NetworkStatus.best(of: [.reachable(.cellular), .reachable(.wifi), .notReachable])
                == .reachable(.wifi))
    }

    @Test func `invalidates what requests have shown`() {
        #expect(NetworkStatus.notReachable.event == .connectionFailed(.connect))
        #expect(NetworkStatus.reachable(.wifi).event == .reset)
        #expect(NetworkStatus.unknown.event == .reset)
    }
}
