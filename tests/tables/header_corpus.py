"""Small tables of many kinds, each with the row that is its header (0: none).

`HEADERS` are normal files whose first row names the columns, awkward ones among them: none of them
may lose it. `TITLES` have lines above the header. `NO_HEADERS` are tables whose rows show that the
first is one of them. `UNDECIDED` have no header, but nothing shows it.
"""

from __future__ import annotations

HEADERS = {
    "plain": "sku,title,price\n001,Lamp,12.50\n002,Desk,99.00\n003,Sofa,310.00\n",
    "all text": "title,brand,shop\nLamp,Acme,North\nDesk,Bolt,South\nSofa,Acme,North\n",
    "one text column": "title\nLamp\nDesk\nSofa\n",
    "one number column": "price\n12\n13\n14\n",
    "one row": "title,price\nLamp,12.50\n",
    "one text row": "title,brand\nLamp,Acme\n",
    "no rows": "title,price\n",
    "years": "country,2019,2020,2021\nChad,1.5,2.5,3.5\nPeru,4.1,3.1,2.1\n",
    "years that fall": "country,2021,2020,2019\nChad,1.5,2.5,3.5\nPeru,4.1,3.1,2.1\n",
    "year alone": "country,2020\nChad,1.5\nPeru,4.1\n",
    "pandas": "0,1,2\n7,1,9\n8,8,8\n3,1,4\n",
    "pandas series": ",0\na,5\nb,6\nc,7\n",
    "percent": "item,5%,10%\nLamp,3%,2%\nDesk,9%,1%\n",
    "quantiles": "host,0.5,0.95,0.99\na,12,80,81\nb,10,9,300\nc,5,5,5\n",
    "quantiles in order": "host,0.5,0.95,0.99\na,12,80,81\nb,10,90,300\nc,5,6,7\n",
    "places among digits": "0,1,2,3\n7,1,9,0\n0,8,2,8\n3,0,0,4\n9,9,9,9\n",
    "steps": "size,10,20,30\nA,5,25,28\nB,15,18,44\n",
    "months": "shop,2024-01,2024-02\nNorth,10,20\nSouth,30,40\n",
    "days": "shop,2024-01-01,2024-01-02\nNorth,10,20\nSouth,30,40\n",
    "hours": "line,08:00,09:00\nA,4,7\nB,5,6\n",
    "index without a name": ",name,age\n0,Ann,31\n1,Bob,45\n",
    "blank names": "title,,price\nLamp,x,12\nDesk,y,13\n",
    "twins": "name,name,name\nAnn,Bob,Cid\nDan,Eve,Fay\n",
    "short header": "name,age\nAnn,31,x\nBob,45,y\n",
    "dates": "day,event\n2024-01-01,Opening\n2024-01-02,Closing\n",
    "addresses": "url\nhttps://a.example/1\nhttps://a.example/2\n",
    "mail": "email,name\nann@a.example,Ann\nbob@b.example,Bob\n",
    "logical": "name,active\nAnn,true\nBob,false\n",
    "holes": "name,age\nAnn,\nBob,NULL\nCid,31\n",
    "repeated header": "name,city\nAnn,Bonn\nname,city\nBob,Ulm\nname,city\nCid,Ulm\n",
    "name that is a value": "type,name\ntype,Ann\ntoken,Bob\ntype,Cid\n",
    "adjacency": "from,A,B\nA,0,1\nB,1,0\n",
    "codes": "id;code\n1;A12\n2;B13\n",
    "money": "item\tprice\nLamp\t€ 12,50\nDesk\t€ 99,00\n",
    "phone": "name,phone\nAnn,+49 228 123\nBob,+49 30 456\n",
    "answers": "question,answer\nRain?,yes\nSun?,no\n",
    "ids": "id\n3f2504e0-4f89-11d3-9a0c-0305e82c3301\n3f2504e0-4f89-11d3-9a0c-0305e82c3302\n",
    "vietnamese": "Tên,Giá\nĐèn,120000\nBàn,450000\n",
    "prose": "text\nHello, world\nWell, yes\nIt rains, again\n",
    "prose of three": "text\nred, green, blue\nup, down, left\none, two, three\n",
    "blank line first": "\n\nname,age\nAnn,31\nBob,45\n",
    "questionnaire": '"1. How old are you?","2. Where?"\n31,Bonn\n45,Ulm\n',
}
HEADER_ROWS = {"blank line first": 3}

TITLES = {
    "excel": ("Sales 2024,,\nsku,title,price\n1,Lamp,12\n2,Desk,13\n", 2),
    "bare": ("Sales of the year\nsku,title,price\n1,Lamp,12\n2,Desk,13\n", 2),
    "blank between": ("Sales\n\nsku;price\n1;12\n2;13\n", 3),
    "several": ("Acme Ltd\nSales 2024\nAll shops\n\nsku,title,price\n1,Lamp,12\n2,Desk,13\n", 5),
    "text below": ("Customers\nname,city,street\nAnn,Bonn,Rain Rd\nBob,Ulm,Sun St\n", 2),
    "two columns": ("Ages\nname,age\nAnn,31\nBob,45\nCid,50\n", 2),
    "tabs": ("Export of today\nid\tname\n1\tAnn\n2\tBob\n", 2),
}

NO_HEADERS = {
    "typed": "001,Lamp,12.50\n002,Desk,99.00\n003,Sofa,310.00\n",
    "numbers": "5,3,9\n1,8,2\n4,4,7\n",
    "one number column": "17\n4\n99\n",
    "price": "Lamp,12.50\nDesk,99.00\nSofa,310.00\n",
    "dates": "2024-01-01,Opening\n2024-01-02,Closing\n",
    "addresses": "https://a.example/1\nhttps://a.example/2\nhttps://a.example/3\n",
    "mail": "ann@a.example,Ann\nbob@b.example,Bob\n",
    "logical": "Ann,true\nBob,false\nCid,true\n",
    "ids": "3f2504e0-4f89-11d3-9a0c-0305e82c3301,a\n3f2504e0-4f89-11d3-9a0c-0305e82c3302,b\n",
    "iris": "5.1,3.5,1.4,0.2,setosa\n4.9,3.0,1.4,0.2,setosa\n7.0,3.2,4.7,1.4,versicolor\n",
    "hole in the first": "NULL,Lamp,12.50\n2,Desk,99.00\n3,Sofa,310.00\n",
    "categories": "Lamp,Acme,North\nDesk,Acme,North\nSofa,Bolt,South\nChair,Acme,North\n",
    "semicolons": "Lamp;12,50\nDesk;99,00\nSofa;310,00\n",
    "money": "Lamp\t€ 12,50\nDesk\t€ 9,00\nSofa\t€ 310,00\n",
    "log": "2024-01-01 10:00:00|INFO|started\n2024-01-01 10:00:01|INFO|ready\n",
    "census": "39, State-gov, 77516\n50, Private, 83311\n28, Private, 38409\n",
}

UNDECIDED = {
    "names": "Ann,Bonn\nBob,Ulm\nCid,Trier\n",
    "words": "Lamp\nDesk\nSofa\n",
    "year first": "2019,Lamp\n2018,Desk\n2020,Sofa\n",
    "rising": "1,2,3\n6,5,4\n7,9,8\n",
}
