// swift-tools-version: 6.2
import PackageDescription

// Two clients that make the same requests, for deploy/bench/clients.py.
let package = Package(
    name: "client-bench",
    dependencies: [
        .package(name: "pinfold", path: "../../.."),
        .package(url: "https://github.com/swift-server/async-http-client", from: "1.37.0"),
    ],
    targets: [
        .executableTarget(
            name: "pinfold-requests",
            dependencies: [.product(name: "PinfoldClient", package: "pinfold")],
            path: "Sources/ours"),
        .executableTarget(
            name: "ahc-requests",
            dependencies: [.product(name: "AsyncHTTPClient", package: "async-http-client")],
            path: "Sources/others"),
    ])
