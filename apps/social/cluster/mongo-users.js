// Run once, by the image of MongoDB, when its volume is empty.
db.getSiblingDB("social").createUser({
    user: "social",
    pwd: process.env.MONGO_PASSWORD,
    roles: [{ role: "readWrite", db: "social" }],
});
